"""Draw the View of bars."""

from typing import TYPE_CHECKING, Any

import numpy as np

from theseus_track.analysis.figures.colour import desaturated
from theseus_track.analysis.figures.frame import (
    finish,
    label_places,
    place,
    say_nothing,
)
from theseus_track.analysis.figures.text import installed
from theseus_track.analysis.figures.theme import Theme
from theseus_track.analysis.figures.ticks import text_width
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_bar"]

_BAR = 0.42
"""Width of a category in inches, as long as all of them fit."""
_LENGTHS = (2.2, 5.2)
_ACROSS = 2.5
_MAX_VALUES = 16
"""Up to so many bars have their value written at their end."""
_HEADROOM = 0.14


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
    if not view.arrays["y"].size:
        say_nothing(ax, theme)
    elif _has_room(view, theme, along, size[along == "y"] / max(1, len(names))):
        _write_values(ax, view, theme, along, np.asarray(positions, np.float64))
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
    colors = [desaturated(color, scale["saturation"]) for color in scale["colors"]]
    thick = _thickness(view, positions) * (1.0 - scale["gap"])
    for group, color in enumerate(colors):
        own = view.arrays["group"] == group
        where = _places(view, positions)[own]
        paint: dict[str, Any] = {"facecolor": color if scale["fill"] else "none"}
        paint |= {"edgecolor": theme.paper if scale["fill"] else color}
        paint |= {"linewidth": 0.0 if scale["fill"] else theme.line, **scale["options"]}
        heights = view.arrays["y"][own]
        if along == "x":
            ax.bar(where, heights, thick, **paint)
        else:
            ax.barh(where, heights, thick, **paint)
        _draw_errors(ax, view, theme, along, where, own, thick)


def _thickness(view: View, positions: np.ndarray) -> float:
    """Return the room of a bar along its axis."""
    scale: Any = view.scale
    unit = float(np.diff(np.unique(positions)).min()) if len(positions) > 1 else 1.0
    wide: float = unit * scale["width"]
    return wide / len(scale["colors"]) if scale["dodge"] else wide


def _places(view: View, positions: np.ndarray) -> np.ndarray:
    """Return the middle of each bar along its axis."""
    scale: Any = view.scale
    middles: np.ndarray = positions[view.arrays["x"]]
    if not scale["dodge"]:
        return middles
    middle_group = (len(scale["colors"]) - 1) / 2.0
    wide = _thickness(view, positions)
    moved: np.ndarray = middles + wide * (view.arrays["group"] - middle_group)
    return moved


def _values(view: View) -> list[str]:
    return [f"{value:.3g}" for value in view.arrays["y"]]


def _has_room(view: View, theme: Theme, along: str, category: float) -> bool:
    """Say whether the values can be written at the ends of bars, none over another.

    Args:
        view: The View.
        theme: The look.
        along: The axis of the categories.
        category: Inches between two categories.
    """
    scale: Any = view.scale
    if len(view.arrays["y"]) > _MAX_VALUES or any(scale["log"]):
        return False
    if scale["positions"] is not None:
        return False
    per_bar = category / (len(scale["colors"]) if scale["dodge"] else 1)
    needed = text_width(_values(view), theme) if along == "x" else theme.small / 72.0
    return needed <= per_bar


def _write_values(
    ax: "Axes", view: View, theme: Theme, along: str, positions: np.ndarray
) -> None:
    """Write the value of each bar beyond its end and its error bar."""
    arrays = view.arrays
    lowest, highest = np.nan_to_num(arrays["low"]), np.nan_to_num(arrays["high"])
    ups = np.maximum(
        arrays["y"], np.where(np.isnan(arrays["high"]), arrays["y"], highest)
    )
    downs = np.minimum(
        arrays["y"], np.where(np.isnan(arrays["low"]), arrays["y"], lowest)
    )
    for middle, value, up, down, text in zip(
        _places(view, positions), arrays["y"], ups, downs, _values(view), strict=True
    ):
        if not np.isfinite(value):
            continue
        sign, end = (1.0, up) if value >= 0 else (-1.0, down)
        style: dict[str, Any] = {
            "textcoords": "offset points",
            "fontsize": theme.small,
            "fontfamily": list(installed(theme.family)),
            "color": theme.ink,
            "parse_math": False,
        }
        if along == "x":
            side = "bottom" if sign > 0 else "top"
            style |= {"xytext": (0.0, 2.0 * sign), "ha": "center", "va": side}
            ax.annotate(text, (middle, end), **style)
        else:
            side = "left" if sign > 0 else "right"
            style |= {"xytext": (3.0 * sign, 0.0), "ha": side, "va": "center"}
            ax.annotate(text, (end, middle), **style)
    if along == "x":
        ax.margins(y=_HEADROOM)
    else:
        ax.margins(x=_HEADROOM)


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
