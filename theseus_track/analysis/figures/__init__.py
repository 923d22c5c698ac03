"""Plotting helpers that make figures in the house theme without pyplot.

What comes in: arrays, lists, mappings or data frames; `heatmap`, `bar`, `line` and
`scatter` take them as seaborn does. What goes out: a matplotlib Figure that carries
its `View`, what was drawn as data, which `draw` draws again with the same pixels.
Neither pyplot nor global rcParams are touched; matplotlib is imported by the first
figure, seaborn and pandas only where an argument names something of theirs.
"""

from theseus_track.analysis.figures.bar import bar
from theseus_track.analysis.figures.canvas import figure
from theseus_track.analysis.figures.drawing import draw
from theseus_track.analysis.figures.grid import grid
from theseus_track.analysis.figures.heatmap import heatmap
from theseus_track.analysis.figures.histogram import histogram
from theseus_track.analysis.figures.image_grid import image_grid
from theseus_track.analysis.figures.line import line
from theseus_track.analysis.figures.scatter import scatter
from theseus_track.analysis.figures.token_strip import token_strip
from theseus_track.records.view import view_of

__all__ = [
    "bar",
    "draw",
    "figure",
    "grid",
    "heatmap",
    "histogram",
    "image_grid",
    "line",
    "scatter",
    "token_strip",
    "view_of",
]
