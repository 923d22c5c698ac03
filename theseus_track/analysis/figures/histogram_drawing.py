"""Draw the View of a histogram."""

from typing import TYPE_CHECKING, Any

from theseus_track.analysis.figures.frame import finish, place, say_nothing
from theseus_track.analysis.figures.theme import Theme
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_histogram"]

_SIZE = (3.5, 2.4)
_FILL = 0.28
"""Opacity of distributions that are drawn over one another."""


def draw_histogram(view: View, theme: Theme, *, ax: "Axes | None" = None) -> "Figure":
    """Draw a View of kind "histogram" into a new figure, or into `ax`."""
    scale: Any = view.scale
    made, ax, size = place(view, theme, ax, _SIZE, "y")
    edges, heights = view.arrays["edges"], view.arrays["heights"]
    alone = len(heights) == 1
    for row, color in zip(heights, scale["colors"], strict=True):
        fill: dict[str, Any] = {
            "color": color,
            "fill": True,
            "linewidth": 0.0,
            "alpha": 0.9 if alone else _FILL,
            **scale["options"],
        }
        ax.stairs(row, edges, **fill)
        if not alone:
            width = scale["options"].get("linewidth", 0.75 * theme.line)
            ax.stairs(row, edges, color=color, linewidth=width)
    # Limits are left to matplotlib, which knows the other panels of shared axes.
    ax.margins(x=0.0, y=0.05)
    if scale["log"] and (heights > 0).any():
        ax.set_yscale("log", nonpositive="clip")
        ax.minorticks_off()
    if not (heights > 0).any():
        say_nothing(ax, theme)
    return finish(made, ax, view, theme, size=size)
