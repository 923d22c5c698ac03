"""Plotting helpers with seaborn's signatures that make figures without pyplot.

What comes in: arrays, mappings or data frames, as seaborn takes them. What goes
out: a matplotlib Figure in the house theme that carries its `View`, what was drawn
as data. Neither pyplot nor global rcParams are touched; matplotlib is imported by
the first figure, seaborn and pandas only where an argument names something of theirs.
"""

from theseus_track.analysis.figures.bar import bar
from theseus_track.analysis.figures.canvas import figure
from theseus_track.analysis.figures.drawing import draw
from theseus_track.analysis.figures.heatmap import heatmap
from theseus_track.analysis.figures.line import line
from theseus_track.analysis.figures.scatter import scatter
from theseus_track.records.view import view_of

__all__ = ["bar", "draw", "figure", "heatmap", "line", "scatter", "view_of"]
