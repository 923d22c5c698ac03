"""Draw any View again, as the helper that made it drew it."""

from typing import TYPE_CHECKING, Any

from theseus_track.analysis.figures.bar_drawing import draw_bar
from theseus_track.analysis.figures.canvas import look_for
from theseus_track.analysis.figures.heatmap_drawing import draw_heatmap
from theseus_track.analysis.figures.histogram_drawing import draw_histogram
from theseus_track.analysis.figures.image_drawing import draw_images
from theseus_track.analysis.figures.line_drawing import draw_line
from theseus_track.analysis.figures.panels import (
    Painter,
    draw_panels,
    panels_of_heatmap,
)
from theseus_track.analysis.figures.scatter_drawing import draw_scatter
from theseus_track.analysis.figures.theme import Theme
from theseus_track.analysis.figures.token_drawing import draw_tokens
from theseus_track.analysis.figures.views import split_view
from theseus_track.errors import BadInput
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "paint"]

_PAINTERS: dict[str, Painter] = {
    "heatmap": draw_heatmap,
    "bar": draw_bar,
    "line": draw_line,
    "scatter": draw_scatter,
    "histogram": draw_histogram,
    "image_grid": draw_images,
    "token_strip": draw_tokens,
}
_PANEL_DIMS = 3


def draw(view: View, *, ax: "Axes | None" = None) -> "Figure":
    """Draw a View, for example one read from the ledger.

    Args:
        view: What a helper left on its figure.
        ax: Axes to draw into, or None for a new figure.

    Returns:
        A figure with the same pixels as the helper's, which carries the View.

    Raises:
        BadInput: When a View of several panels is to be drawn into one axes.

    Example:
        >>> from theseus_track.analysis.figures import draw, line, view_of
        >>> view = view_of(line([3.0, 1.0, 2.0]))
        >>> view_of(draw(view)) is view
        True
    """
    name: Any = view.scale.get("theme")
    return paint(view, look_for(name, None), ax=ax)


def paint(
    view: View,
    theme: Theme,
    *,
    ax: "Axes | None" = None,
    **extra: Any,
) -> "Figure":
    """Draw a View in a theme.

    Args:
        view: What to draw.
        theme: The look.
        ax: Axes to draw into, or None for a new figure.
        **extra: `cbar_ax`, for a heatmap.
    """
    panels = _panels(view)
    if panels is None:
        return _PAINTERS[view.kind](view, theme, ax=ax, **extra)
    if ax is not None or any(value is not None for value in extra.values()):
        raise BadInput(
            f"{len(panels)} panels need a figure of their own. Leave ax and cbar_ax "
            "out, or draw one of them, such as data[0]."
        )
    return draw_panels(view, panels, theme, paint)


def _panels(view: View) -> list[View] | None:
    if view.kind == "grid":
        return split_view(view)
    values = view.arrays.get("values")
    if view.kind == "heatmap" and values is not None and values.size:
        return panels_of_heatmap(view) if values.ndim == _PANEL_DIMS else None
    return None
