"""Draw several Views as the panels of one figure, on shared axes and scales."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from theseus_track.analysis.figures.canvas import new_figure
from theseus_track.analysis.figures.frame import add_legend
from theseus_track.analysis.figures.header import header_height, write_header
from theseus_track.analysis.figures.heatmap_parts import (
    FLAT,
    add_bar,
    axes_size,
    mappable_of,
    marks_of,
    text_of,
    texts_of,
)
from theseus_track.analysis.figures.texts import write
from theseus_track.analysis.figures.theme import Theme
from theseus_track.analysis.figures.ticks import text_width
from theseus_track.analysis.figures.token_drawing import strip_height
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Painter", "draw_panels", "panels_of_heatmap"]

Painter = Callable[..., "Figure"]
"""Draws one View into axes: (view, theme, ax=)."""

_LARGEST = (5.4, 5.0)
_SMALLEST = (0.75, 0.55)
_SIZES = {"image_grid": (1.8, 1.8)}
_STRIP = 4.6
_SIZE = (1.75, 1.3)
_COLORED = ("heatmap", "token_strip", "image_grid")


def panels_of_heatmap(view: View) -> list[View]:
    """Return the panels of a three-dimensional heatmap as Views of their own."""
    names, annot = texts_of(view, "panels"), view.labels.get("annot")
    return [
        View(
            kind="heatmap",
            arrays={role: array[index] for role, array in view.arrays.items()},
            labels={
                "title": names[index],
                "annot": annot[index] if isinstance(annot, list) else None,
            },
            ticks=view.ticks,
            scale=view.scale,
        )
        for index in range(len(view.arrays["values"]))
    ]


def draw_panels(
    view: View, panels: Sequence[View], theme: Theme, paint: Painter
) -> "Figure":
    """Draw a View that consists of several.

    Args:
        view: The whole: its `labels` give title, axes and notes, its `scale` may give
            `cols`.
        panels: Its parts, each with its name as title.
        theme: The look.
        paint: Draws one part into axes.

    Returns:
        A new figure that carries the whole View.
    """
    size = _panel_size(panels, theme)
    across = _across(view, len(panels), size)
    down = math.ceil(len(panels) / across)
    shrink = min(1.0, _LARGEST[0] / (across * size[0]), _LARGEST[1] / (down * size[1]))
    lowest = (_SMALLEST[0], min(_SMALLEST[1], size[1]))
    size = (max(lowest[0], size[0] * shrink), max(lowest[1], size[1] * shrink))
    made, grid = _axes(view, panels, theme, (down, across), size)
    bare: dict[str, Any] = {"panel": list(size)}
    if _has_bar(view, panels):
        bare["colorbar"] = False
    small_theme = dataclasses.replace(
        theme, title=theme.small, text=theme.small, small=0.9 * theme.small
    )
    for panel, ax in zip(panels, grid.flat, strict=False):
        labels = {**panel.labels, "x": None, "y": None, "legend": [], "counts": {}}
        small = dataclasses.replace(panel, labels=labels, scale={**panel.scale, **bare})
        paint(small, small_theme, ax=ax)
    for ax in grid.flat[len(panels) :]:
        ax.set_visible(False)
    _label_outer(grid, len(panels))
    _explain(made, grid, view, panels, theme, size)
    made.theseus_view = view  # type: ignore[attr-defined]
    return made


def _panel_size(panels: Sequence[View], theme: Theme) -> tuple[float, float]:
    kind = panels[0].kind
    if kind == "token_strip":
        return _STRIP, max(strip_height(panel, theme, _STRIP) for panel in panels)
    if kind != "heatmap":
        return _SIZES.get(kind, _SIZE)
    sizes = [axes_size(panel.arrays["values"].shape, panel, theme) for panel in panels]
    return max(size[0] for size in sizes), max(size[1] for size in sizes)


def _across(view: View, count: int, one: tuple[float, float]) -> int:
    """Return how many panels to put in a row, so that the page is not too tall."""
    cols = view.scale.get("cols")
    if isinstance(cols, int):
        return max(1, min(cols, count))
    wide = math.sqrt(count * one[1] / one[0] * _LARGEST[0] / _LARGEST[1])
    across = min(count, max(1, math.ceil(wide)))
    # As many rows as that takes, filled evenly.
    return math.ceil(count / math.ceil(count / across))


def _axes(
    view: View,
    panels: Sequence[View],
    theme: Theme,
    shape: tuple[int, int],
    size: tuple[float, float],
) -> "tuple[Figure, np.ndarray]":
    down, across = shape
    shared = _shared(view, panels)
    ticks = text_width(
        [text for panel in panels for text in panel.ticks.get("y", ())], theme
    )
    between_x = 0.14 if shared["sharey"] else 0.5
    if panels[0].kind in _COLORED and not _has_bar(view, panels):
        between_x += 0.5
    between_y = 0.32 if shared["sharex"] else 0.55
    beside = 0.85 if _has_bar(view, panels) else 0.1
    entries = _legend(panels)
    if entries and down * across == len(panels):
        beside += text_width([entry["label"] for entry in entries], theme) + 0.5
    width = across * (size[0] + between_x) + min(ticks, 1.5) + beside + 0.75
    notes, marks = texts_of(view, "notes"), marks_of(view, theme)
    top = header_height(theme, text_of(view, "title"), notes, marks, width)
    turned = text_width([t for p in panels for t in p.ticks.get("x", ())], theme)
    below = 0.55 + min(turned, 1.2)
    if panels[0].kind in ("token_strip", "image_grid"):
        # Nothing but a label stands below these.
        between_y, below = 0.3, 0.3 if text_of(view, "x") else 0.1
    made = new_figure(width, down * (size[1] + between_y) + below + top, theme)
    return made, made.subplots(down, across, squeeze=False, **shared)


def _shared(view: View, panels: Sequence[View]) -> dict[str, Any]:
    """Return which axes mean the same in all panels."""
    kind, share = panels[0].kind, view.scale.get("share", True)
    if not share or kind in ("token_strip", "image_grid"):
        return {"sharex": False, "sharey": False}
    if kind == "heatmap":
        shapes = {panel.arrays["values"].shape[-2:] for panel in panels}
        same = len(shapes) == 1
        return {"sharex": same, "sharey": same}
    return {
        f"share{axis}": len({tuple(panel.ticks.get(axis, ())) for panel in panels}) == 1
        for axis in "xy"
    }


def _label_outer(grid: np.ndarray, count: int) -> None:
    """Keep the tick labels of shared axes at the left and at the bottom only."""
    down, across = grid.shape
    for index, ax in enumerate(grid.flat[:count]):
        row, column = divmod(index, across)
        lowest = index + across >= count or row == down - 1
        if ax.get_shared_x_axes().get_siblings(ax)[1:]:
            ax.tick_params(labelbottom=lowest)
        if ax.get_shared_y_axes().get_siblings(ax)[1:]:
            ax.tick_params(labelleft=column == 0)


def _explain(
    made: "Figure",
    grid: np.ndarray,
    view: View,
    panels: Sequence[View],
    theme: Theme,
    size: tuple[float, float],
) -> None:
    """Write title, notes and axis labels; add what explains the colours."""
    notes, marks = texts_of(view, "notes"), marks_of(view, theme)
    write_header(made, theme, text_of(view, "title"), notes, marks)
    down, across = grid.shape
    whole = (across * size[0], down * size[1])
    for place, role, room in (
        (made.supxlabel, "x", whole[0]),
        (made.supylabel, "y", whole[1]),
    ):
        label = text_of(view, role)
        if label:
            write(place(""), label, theme, width=room, size=theme.text)
    if _has_bar(view, panels):
        shown: list[Axes] = list(grid.flat[: len(panels)])
        size = (whole[0], max(whole[1], FLAT))
        add_bar(made, mappable_of(panels[0]), panels[0], theme, shown, None, size)
    entries = _legend(panels)
    empty = list(grid.flat[len(panels) :])
    if entries and empty:
        empty[0].set(visible=True)
        empty[0].set_axis_off()
        add_legend(empty[0], panels[0].kind, theme, entries, loc="upper left")
    elif entries:
        add_legend(made, panels[0].kind, theme, entries, loc="outside right upper")


def _has_bar(view: View, panels: Sequence[View]) -> bool:
    """Say whether one colour bar explains the panels."""
    if panels[0].kind not in _COLORED or not panels[0].scale.get("colorbar", True):
        return False
    shared = bool(view.scale.get("share", True))
    return shared and any(np.isfinite(p.arrays["values"]).any() for p in panels)


def _legend(panels: Sequence[View]) -> list[dict[str, Any]]:
    """Return the entries of all panels' legends, each once."""
    merged: dict[str, dict[str, Any]] = {}
    for panel in panels:
        entries = panel.labels.get("legend")
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                merged.setdefault(str(entry["label"]), entry)
    return list(merged.values())
