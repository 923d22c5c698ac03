"""Draw the View of a heatmap."""

from typing import TYPE_CHECKING, Any

import numpy as np

from theseus_track.analysis.figures.canvas import (
    attach,
    caption_axes,
    label_axes,
    new_figure,
    style_axes,
)
from theseus_track.analysis.figures.cells import TIMES
from theseus_track.analysis.figures.heatmap_panels import draw_panels
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
from theseus_track.analysis.figures.theme import Theme
from theseus_track.analysis.figures.ticks import text_width
from theseus_track.errors import BadInput
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_heatmap"]

_PANEL_DIMS = 3


def draw_heatmap(
    view: View,
    theme: Theme,
    *,
    ax: "Axes | None" = None,
    cbar_ax: "Axes | None" = None,
) -> "Figure":
    """Draw a View of kind "heatmap" into a new figure, or into `ax`.

    Raises:
        BadInput: When small multiples are asked for inside one given axes.
    """
    values = view.arrays["values"]
    if values.ndim == _PANEL_DIMS and values.size:
        if ax is not None or cbar_ax is not None:
            raise BadInput(
                f"data of shape {values.shape} gives small multiples, which need a "
                "figure of their own. Leave ax and cbar_ax out, or draw data[i]."
            )
        return draw_panels(view, theme)
    made, ax, size = _place(view, theme, ax)
    if not values.size or not values.ndim:
        return _draw_text(view, theme, made, ax)
    image = draw_cells(ax, view, theme, values, view.arrays.get("mask"))
    annotate(ax, image, view, theme, view.labels.get("annot"), size)
    label_axes(
        ax,
        theme,
        title=text_of(view, "title"),
        xlabel=text_of(view, "x"),
        ylabel=text_of(view, "y"),
    )
    skipped = label_rows_and_columns(ax, view, theme, size, values.shape)
    notes = [*texts_of(view, "notes"), *skipped]
    caption_axes(ax, theme, notes, marks=marks_of(view, theme), width=size[0] + 0.5)
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
        made = ax.get_figure(root=True)
        if made is None:
            raise BadInput("ax= belongs to no figure. Pass axes of a figure.")
        box = ax.get_position()
        width, height = made.get_size_inches()
        return made, ax, (box.width * width, box.height * height)
    shape = view.arrays["values"].shape
    size = axes_size(shape, view, theme) if view.arrays["values"].size else (2.6, 1.4)
    ticks = text_width([str(t)[:40] for t in view.ticks.get("y", ())], theme)
    beside = size[1] >= FLAT and view.scale.get("colorbar", True)
    below = 0.75 if size[1] < FLAT and view.scale.get("colorbar", True) else 0.3
    turned = text_width([str(t)[:40] for t in view.ticks.get("x", ())], theme)
    rows = len(texts_of(view, "notes")) + bool(view.labels.get("counts"))
    width = size[0] + ticks + 0.45 + (0.85 if beside else 0.1)
    height = size[1] + 0.75 + below + min(turned, 1.5) + 0.17 * rows
    made = new_figure(width, height, theme)
    return made, made.subplots(), size


def _draw_text(view: View, theme: Theme, made: "Figure", ax: "Axes") -> "Figure":
    """Show one number, or that there is none, where a picture would be."""
    values = view.arrays["values"]
    style_axes(ax, theme)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set(xticks=[], yticks=[])
    font: dict[str, Any] = {
        "fontfamily": list(installed(theme.family)),
        "ha": "center",
        "va": "center",
    }
    if values.ndim:
        shape = TIMES.join(map(str, values.shape))
        text, size, color = f"no data (shape {shape})", theme.title, theme.quiet
    else:
        text, size, color = f"{values.item():.6g}", 2.4 * theme.title, theme.ink
    ax.text(0.5, 0.5, text, transform=ax.transAxes, fontsize=size, color=color, **font)
    label_axes(
        ax,
        theme,
        title=text_of(view, "title"),
        xlabel=text_of(view, "x"),
        ylabel=text_of(view, "y"),
    )
    return attach(made, ax, view)
