"""Draw the View of an image grid."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from theseus_track.analysis.figures.canvas import attach, new_figure, style_axes
from theseus_track.analysis.figures.colour import colormap
from theseus_track.analysis.figures.frame import room_of, say_nothing
from theseus_track.analysis.figures.heatmap_parts import (
    add_bar,
    mappable_of,
    marks_of,
    norm_of,
    painted,
    text_of,
    texts_of,
)
from theseus_track.analysis.figures.text import (
    installed,
    literal,
    shortened,
    text_extent,
)
from theseus_track.analysis.figures.texts import caption_axes, label_axes
from theseus_track.analysis.figures.theme import Theme
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_images"]

_LARGEST = (4.4, 4.4)
_TILE = (0.5, 1.2)
"""Smallest and largest side of a tile, in inches."""
_POINTS_PER_INCH = 72.0
_GAP = 0.06


def draw_images(view: View, theme: Theme, *, ax: "Axes | None" = None) -> "Figure":
    """Draw a View of kind "image_grid" into a new figure, or into `ax`."""
    images = view.arrays["values"]
    names = texts_of(view, "panels")
    down, across = _arranged(view, images)
    made, ax, size = _place(view, theme, ax, (down, across))
    style_axes(ax, theme)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set(xticks=[], yticks=[])
    if not images.size:
        say_nothing(ax, theme, images.shape)
    # Coordinates in tiles: an image is 1 wide and `tall` high, its title above it.
    tall = images.shape[1] / images.shape[2] if images.size else 1.0
    tile = size[0] / (across + _GAP * (across - 1))
    head = 1.35 * theme.small / _POINTS_PER_INCH / tile if names else 0.0
    for index in range(len(images) if images.size else 0):
        row, column = divmod(index, across)
        left = column * (1.0 + _GAP)
        top = row * (tall + _GAP + head) + head
        _draw_image(ax, view, theme, images[index], (left, left + 1.0, top + tall, top))
        if names:
            _name(ax, theme, names[index], (left, top - 0.2 * head), tile)
    ax.set(
        xlim=(0.0, across + _GAP * (across - 1)),
        ylim=(down * (tall + head) + _GAP * (down - 1), 0.0),
        aspect="equal",
        anchor="NW",
    )
    label_axes(
        ax,
        theme,
        title=text_of(view, "title"),
        xlabel=text_of(view, "x"),
        ylabel=text_of(view, "y"),
        size=size,
        beside=0.6 if view.scale.get("colorbar") else 0.0,
    )
    notes, marks = texts_of(view, "notes"), marks_of(view, theme)
    caption_axes(ax, theme, notes, marks=marks, width=size[0])
    if view.scale.get("colorbar") and np.isfinite(images).any():
        add_bar(made, mappable_of(view), view, theme, ax, None, size)
    return attach(made, ax, view)


def _arranged(view: View, images: np.ndarray) -> tuple[int, int]:
    """Return rows and columns of the grid."""
    count = max(1, len(images))
    cols = view.scale.get("cols")
    if isinstance(cols, int):
        across = max(1, min(cols, count))
    else:
        tall = images.shape[1] / images.shape[2] if images.size else 1.0
        across = min(count, max(1, math.ceil(math.sqrt(count * tall * 1.4))))
        across = math.ceil(count / math.ceil(count / across))
    return math.ceil(count / across), across


def _place(
    view: View, theme: Theme, ax: "Axes | None", shape: tuple[int, int]
) -> "tuple[Figure, Axes, tuple[float, float]]":
    if ax is not None:
        made, size = room_of(view, ax)
        return made, ax, size
    down, across = shape
    images = view.arrays["values"]
    tall = images.shape[1] / images.shape[2] if images.size else 1.0
    named = bool(texts_of(view, "panels"))
    head = 1.35 * theme.small / _POINTS_PER_INCH if named else 0.0
    tile = min(_TILE[1], _LARGEST[0] / across, _LARGEST[1] / (down * tall))
    tile = max(tile, _TILE[0])
    gaps = 1.0 + _GAP
    size = (across * tile * gaps, down * (tile * tall + head + _GAP * tile))
    rows = len(texts_of(view, "notes")) + bool(view.labels.get("counts"))
    bar = 0.75 if view.scale.get("colorbar") else 0.0
    title = 0.35 if view.labels.get("title") else 0.1
    labels = 0.25 * bool(view.labels.get("x"))
    beside, below = (bar, 0.0) if size[1] >= 1.3 else (0.0, 0.85 * bar)
    made = new_figure(
        max(size[0] + 0.2 + beside, 2.2),
        size[1] + title + labels + below + 0.2 * rows + 0.1,
        theme,
    )
    return made, made.subplots(), size


def _draw_image(
    ax: "Axes",
    view: View,
    theme: Theme,
    image: np.ndarray,
    extent: tuple[float, float, float, float],
) -> None:
    from matplotlib.patches import Rectangle

    place: dict[str, Any] = {
        "extent": extent,
        "origin": "upper",
        "interpolation": "none",
    }
    scale: Any = view.scale
    if scale["colored"]:
        bad = np.isnan(image).any(axis=-1)
        ax.imshow(np.clip(np.nan_to_num(image), 0.0, 1.0), **place)
        kinds = np.stack([bad, np.zeros_like(bad), np.zeros_like(bad)])
    else:
        shown = np.ma.masked_invalid(image)
        ax.imshow(shown, cmap=colormap(scale), norm=norm_of(scale), **place)
        kinds = np.stack([np.isnan(image), image == np.inf, image == -np.inf])
    if kinds.any():
        ax.imshow(painted(kinds, theme), **place)
    left, right, bottom, top = extent
    ax.add_patch(
        Rectangle(
            (left, top),
            right - left,
            bottom - top,
            fill=False,
            edgecolor=theme.axis,
            linewidth=0.5 * theme.stroke,
            clip_on=False,
        )
    )


def _name(
    ax: "Axes", theme: Theme, name: str, where: tuple[float, float], tile: float
) -> None:
    text = literal(name, theme)
    most = len(text)
    while most > 3 and text_extent(shortened(text, most), theme, theme.small) > tile:
        most -= 1
    ax.text(
        *where,
        shortened(text, most),
        fontsize=theme.small,
        fontfamily=list(installed(theme.family)),
        color=theme.ink,
        ha="left",
        va="baseline",
        parse_math=False,
    )
