"""Draw any View again, as the helper that made it drew it."""

from typing import TYPE_CHECKING

from theseus_track.analysis.figures.bar_drawing import draw_bar
from theseus_track.analysis.figures.heatmap_drawing import draw_heatmap
from theseus_track.analysis.figures.line_drawing import draw_line
from theseus_track.analysis.figures.scatter_drawing import draw_scatter
from theseus_track.analysis.figures.theme import HOUSE
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

_DRAWINGS = {
    "heatmap": draw_heatmap,
    "bar": draw_bar,
    "line": draw_line,
    "scatter": draw_scatter,
}


def draw(view: View, *, ax: "Axes | None" = None) -> "Figure":
    """Draw a View, for example one read from the ledger.

    Args:
        view: What a helper left on its figure.
        ax: Axes to draw into, or None for a new figure.

    Returns:
        A figure with the same pixels as the helper's, which carries the View.
    """
    return _DRAWINGS[view.kind](view, HOUSE, ax=ax)
