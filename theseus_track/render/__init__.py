"""The render layer: what `plot` returned becomes PDF, PNG and JSON bytes.

What comes in: a Figure, an Axes, a seaborn grid, a JSON value, a mapping of part
names to those, or None. What goes out: `RenderedPart` records with the bytes of
each file and the View that a plotting helper left on its figure. Files are made
in one worker process, so that the training process only builds figures.
"""

from theseus_track.render.normalise import normalise
from theseus_track.render.private import private_pyplot
from theseus_track.render.renderer import RenderedPart, Renderer

__all__ = ["RenderedPart", "Renderer", "normalise", "private_pyplot"]
