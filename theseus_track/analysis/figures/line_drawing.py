"""Draw the View of lines."""

from typing import TYPE_CHECKING, Any

import numpy as np

from theseus_track.analysis.figures.frame import (
    finish,
    label_places,
    place,
    say_nothing,
)
from theseus_track.analysis.figures.theme import Theme
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_line"]

_SIZE = (3.7, 2.5)
_MANY_POINTS = 20_000
"""More points than this become pixels inside the PDF."""


def draw_line(view: View, theme: Theme, *, ax: "Axes | None" = None) -> "Figure":
    """Draw a View of kind "line" into a new figure, or into `ax`."""
    scale: Any = view.scale
    along = str(scale["orient"])
    made, ax, size = place(view, theme, ax, _SIZE, "y" if along == "x" else "x")
    arrays = view.arrays
    for group in range(len(scale["colors"])):
        own = arrays["group"] == group
        color = (
            scale["options"].get("color") or scale["colors"][group] or theme.palette[0]
        )
        x, y = arrays["x"][own], arrays["y"][own]
        _draw_errors(ax, view, along, own, color, theme)
        dash = scale["dashes"][group]
        style = {
            "color": color,
            "linewidth": scale["widths"][group] or theme.line,
            "linestyle": (0, tuple(dash)) if dash else "-",
            "marker": scale["markers"][group] or ("o" if len(x) == 1 else ""),
            "markersize": 5.0,
            "markeredgecolor": theme.paper,
            "markeredgewidth": 0.5,
            "rasterized": len(x) > _MANY_POINTS,
            "solid_capstyle": "round",
        }
        kept = {k: v for k, v in scale["options"].items() if k != "color"}
        ax.plot(x, y, **{**style, **kept})
        _draw_lone_points(ax, x, y, color)
    if not arrays["y"].size:
        say_nothing(ax, theme)
    names = list(view.ticks.get(along, ()))
    notes = label_places(ax, along, names, list(range(len(names))), size, theme)
    return finish(made, ax, view, theme, size=size, notes=notes)


def _draw_lone_points(ax: "Axes", x: np.ndarray, y: np.ndarray, color: str) -> None:
    """Mark points between two gaps, which a line alone would not show."""
    known = np.concatenate([[False], np.isfinite(x) & np.isfinite(y), [False]])
    alone = known[1:-1] & ~known[:-2] & ~known[2:]
    if alone.any() and len(x) > 1:
        ax.scatter(x[alone], y[alone], s=10.0, color=color, linewidths=0.0)


def _draw_errors(
    ax: "Axes", view: View, along: str, own: np.ndarray, color: str, theme: Theme
) -> None:
    scale: Any = view.scale
    low, high = view.arrays["low"][own], view.arrays["high"][own]
    if not np.isfinite(low).any():
        return
    where = view.arrays["x" if along == "x" else "y"][own]
    if scale["error_style"] == "band":
        fill = ax.fill_between if along == "x" else ax.fill_betweenx
        style: dict[str, Any] = {"color": color, "alpha": 0.2, "linewidth": 0.0}
        fill(where, low, high, **{**style, **scale["error_options"]})
        return
    stems = ax.vlines if along == "x" else ax.hlines
    style = {"colors": color, "linewidths": theme.line * 0.8}
    renamed = {"color": "colors", "linewidth": "linewidths"}
    style |= {renamed.get(k, k): v for k, v in scale["error_options"].items()}
    stems(where, low, high, **style)
