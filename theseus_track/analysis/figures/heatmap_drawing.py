"""Draw the View of a heatmap."""

from typing import TYPE_CHECKING

import numpy as np

from theseus_track.analysis.figures.canvas import (
    attach,
    new_figure,
    style_axes,
)
from theseus_track.analysis.figures.frame import room_of, say_nothing
from theseus_track.analysis.figures.heatmap_parts import (
    FLAT,
    add_bar,
    annotate,
    axes_size,
    draw_cells,
    label_rows_and_columns,
    marks_of,
    text_of,
    texts_of,
)
from theseus_track.analysis.figures.text import installed
from theseus_track.analysis.figures.texts import caption_axes, label_axes, room_for
from theseus_track.analysis.figures.theme import Theme
from theseus_track.analysis.figures.ticks import text_width
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_heatmap"]

_BESIDE = 0.6
"""Inches that a colour bar takes beside the cells; a title may reach over it."""


def draw_heatmap(
    view: View,
    theme: Theme,
    *,
    ax: "Axes | None" = None,
    cbar_ax: "Axes | None" = None,
) -> "Figure":
    """Draw a View of kind "heatmap" into a new figure, or into `ax`."""
    values = view.arrays["values"]
    made, ax, size = _place(view, theme, ax)
    if not values.size or not values.ndim:
        return _draw_text(view, theme, made, ax, size)
    image = draw_cells(ax, view, theme, values, view.arrays.get("mask"))
    annotate(ax, image, view, theme, view.labels.get("annot"), size)
    beside = _BESIDE if _has_bar_beside(view, size) else 0.0
    _label(ax, view, theme, size, beside)
    skipped = label_rows_and_columns(ax, view, theme, size, values.shape)
    notes = [*texts_of(view, "notes"), *skipped]
    caption_axes(ax, theme, notes, marks=marks_of(view, theme), width=size[0] + beside)
    if view.scale.get("colorbar", True) and np.isfinite(values).any():
        add_bar(
            made, image, view, theme, ax if cbar_ax is None else None, cbar_ax, size
        )
    return attach(made, ax, view)


def _place(
    view: View, theme: Theme, ax: "Axes | None"
) -> "tuple[Figure, Axes, tuple[float, float]]":
    """Return the figure, the axes and the expected size of the axes in inches."""
    if ax is not None:
        made, size = room_of(view, ax)
        return made, ax, size
    shape = view.arrays["values"].shape
    size = axes_size(shape, view, theme) if view.arrays["values"].size else (2.6, 1.4)
    ticks = text_width(view.ticks.get("y", ()), theme)
    beside = _has_bar_beside(view, size)
    left, above = room_for(
        theme,
        title=text_of(view, "title"),
        ylabel=text_of(view, "y"),
        size=size,
        beside=_BESIDE if beside else 0.0,
    )
    below = 0.75 if size[1] < FLAT and view.scale.get("colorbar", True) else 0.3
    turned = text_width(view.ticks.get("x", ()), theme)
    rows = 1.5 * len(texts_of(view, "notes")) + bool(view.labels.get("counts"))
    width = size[0] + ticks + left + 0.4 + (0.85 if beside else 0.1)
    height = size[1] + above + 0.5 + below + min(turned, 1.5) + 0.17 * rows
    made = new_figure(width, height, theme)
    return made, made.subplots(), size


def _label(
    ax: "Axes", view: View, theme: Theme, size: tuple[float, float], beside: float
) -> None:
    label_axes(
        ax,
        theme,
        title=text_of(view, "title"),
        xlabel=text_of(view, "x"),
        ylabel=text_of(view, "y"),
        size=size,
        beside=beside,
    )


def _has_bar_beside(view: View, size: tuple[float, float]) -> bool:
    shown = bool(view.scale.get("colorbar", True))
    return shown and size[1] >= FLAT and bool(np.isfinite(view.arrays["values"]).any())


def _draw_text(
    view: View,
    theme: Theme,
    made: "Figure",
    ax: "Axes",
    size: tuple[float, float],
) -> "Figure":
    """Show one number, or that there is none, where a picture would be."""
    values = view.arrays["values"]
    style_axes(ax, theme)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if values.ndim:
        say_nothing(ax, theme, values.shape)
    else:
        ax.set(xticks=[], yticks=[])
        ax.text(
            0.5,
            0.5,
            f"{values.item():.6g}",
            transform=ax.transAxes,
            fontsize=2.4 * theme.title,
            fontfamily=list(installed(theme.family)),
            color=theme.ink,
            ha="center",
            va="center",
        )
    _label(ax, view, theme, size, 0.0)
    return attach(made, ax, view)
