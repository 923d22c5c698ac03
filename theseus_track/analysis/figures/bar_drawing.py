"""Draw the View of bars."""

import colorsys
from typing import TYPE_CHECKING, Any

import numpy as np

from theseus_track.analysis.figures.frame import finish, label_places, place
from theseus_track.analysis.figures.theme import Theme
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_bar"]

_BAR = 0.42
"""Width of a category in inches, as long as all of them fit."""
_LENGTHS = (2.4, 6.4)
_ACROSS = 2.8


def draw_bar(view: View, theme: Theme, *, ax: "Axes | None" = None) -> "Figure":
    """Draw a View of kind "bar" into a new figure, or into `ax`."""
    scale: Any = view.scale
    along = str(scale["orient"])
    names = list(view.ticks.get(along, ()))
    length = min(max(_BAR * len(names), _LENGTHS[0]), _LENGTHS[1])
    size = (length, _ACROSS) if along == "x" else (_ACROSS * 1.4, length * 0.8)
    made, ax, size = place(view, theme, ax, size, "y" if along == "x" else "x")
    positions = scale["positions"] or list(range(len(names)))
    _draw_patches(ax, view, theme, along, np.asarray(positions, np.float64))
    for axis, base in zip("xy", scale["log"], strict=True):
        if base:
            getattr(ax, f"set_{axis}scale")("log", base=base, nonpositive="clip")
    notes = []
    if scale["positions"] is None:
        notes = label_places(ax, along, names, positions, size, theme)
        limits = (-0.5, max(len(names), 1) - 0.5)
        # Sideways, the first category is on top, as one reads.
        _ = ax.set_xlim(limits) if along == "x" else ax.set_ylim(limits[::-1])
        ax.tick_params(axis="x" if along == "x" else "y", length=0)
    return finish(made, ax, view, theme, size=size, notes=notes)


def _draw_patches(
    ax: "Axes", view: View, theme: Theme, along: str, positions: np.ndarray
) -> None:
    scale: Any = view.scale
    arrays = view.arrays
    colors = [_desaturated(color, scale["saturation"]) for color in scale["colors"]]
    unit = float(np.diff(np.unique(positions)).min()) if len(positions) > 1 else 1.0
    count = len(colors) if scale["dodge"] else 1
    wide = unit * scale["width"] / count
    thick = wide * (1.0 - scale["gap"])
    for group, color in enumerate(colors):
        own = arrays["group"] == group
        shift = wide * (group - (count - 1) / 2.0) if scale["dodge"] else 0.0
        where = positions[arrays["x"][own]] + shift
        paint: dict[str, Any] = {"facecolor": color if scale["fill"] else "none"}
        paint |= {"edgecolor": theme.paper if scale["fill"] else color}
        paint |= {"linewidth": 0.0 if scale["fill"] else theme.line, **scale["options"]}
        heights = arrays["y"][own]
        if along == "x":
            ax.bar(where, heights, thick, **paint)
        else:
            ax.barh(where, heights, thick, **paint)
        _draw_errors(ax, view, theme, along, where, own, thick)


def _draw_errors(
    ax: "Axes",
    view: View,
    theme: Theme,
    along: str,
    where: np.ndarray,
    own: np.ndarray,
    thick: float,
) -> None:
    scale: Any = view.scale
    style: dict[str, Any] = {"colors": theme.ink, "linewidths": theme.line * 0.8}
    renamed = {"color": "colors", "linewidth": "linewidths", "linestyle": "linestyles"}
    style |= {renamed.get(k, k): v for k, v in scale["error_options"].items()}
    low, high = view.arrays["low"][own], view.arrays["high"][own]
    known = np.isfinite(low) & np.isfinite(high)
    where, low, high = where[known], low[known], high[known]
    if not where.size:
        return
    stems, caps = (ax.vlines, ax.hlines) if along == "x" else (ax.hlines, ax.vlines)
    stems(where, low, high, **style)
    half = scale["capsize"] * thick / 2.0
    if half:
        for end in (low, high):
            caps(end, where - half, where + half, **style)


def _desaturated(color: str, saturation: float) -> str:
    """Return a colour with its HLS saturation scaled, as seaborn fills bars."""
    from matplotlib.colors import to_hex, to_rgb

    hue, lightness, strength = colorsys.rgb_to_hls(*to_rgb(color))
    return to_hex(colorsys.hls_to_rgb(hue, lightness, strength * saturation))
