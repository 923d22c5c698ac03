"""Draw the View of a token strip."""

from typing import TYPE_CHECKING, Any

import numpy as np

from theseus_track.analysis.figures.canvas import attach, new_figure, style_axes
from theseus_track.analysis.figures.colour import ink_on
from theseus_track.analysis.figures.frame import labelled, room_of, say_nothing
from theseus_track.analysis.figures.heatmap_parts import (
    add_bar,
    kind_colors,
    mappable_of,
    marks_of,
    text_of,
    texts_of,
)
from theseus_track.analysis.figures.text import installed, literal, text_extent
from theseus_track.analysis.figures.texts import caption_axes, label_axes, room_for
from theseus_track.analysis.figures.theme import Theme
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_tokens", "strip_height"]

_WIDTH = 5.2
_LONGEST = 24
_POINTS_PER_INCH = 72.0
_LINE = 1.75
"""Distance of lines, in units of the font size."""
_PAD = 0.18
"""Room left and right of a token inside its box, in units of the font size."""
_GAP = 0.14

_Box = tuple[float, float, float, str]
"""Left edge and width in inches, line, and text of a token."""


def draw_tokens(view: View, theme: Theme, *, ax: "Axes | None" = None) -> "Figure":
    """Draw a View of kind "token_strip" into a new figure, or into `ax`."""
    tokens = texts_of(view, "tokens")
    if ax is None:
        boxes, lines = _boxes(tokens, theme, _WIDTH)
        size = (_WIDTH, lines * _line(theme))
        rows = len(texts_of(view, "notes")) + bool(view.labels.get("counts"))
        below = 0.48 if view.scale.get("colorbar") else 0.05
        title = labelled(view.labels.get("title"))
        _, above = room_for(theme, title=title, ylabel=None, size=size)
        height = size[1] + above + below + 0.2 * rows + 0.15
        made = new_figure(size[0] + 0.2, height, theme)
        ax = made.subplots()
    else:
        made, size = room_of(view, ax)
        boxes, lines = _boxes(tokens, theme, size[0])
    style_axes(ax, theme)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set(
        xticks=[],
        yticks=[],
        xlim=(0.0, size[0]),
        ylim=(lines * _line(theme), 0.0),
        # Room beyond the lines stays empty; it must not stretch them.
        aspect="equal",
        anchor="NW",
    )
    if boxes:
        _draw_boxes(ax, view, theme, boxes)
    else:
        say_nothing(ax, theme)
    label_axes(
        ax,
        theme,
        title=text_of(view, "title"),
        xlabel=text_of(view, "x"),
        ylabel=text_of(view, "y"),
        size=size,
    )
    notes, marks = texts_of(view, "notes"), marks_of(view, theme)
    caption_axes(ax, theme, notes, marks=marks, width=size[0])
    if view.scale.get("colorbar") and np.isfinite(view.arrays["values"]).any():
        add_bar(made, mappable_of(view), view, theme, ax, None, (size[0], 0.0))
    return attach(made, ax, view)


def strip_height(view: View, theme: Theme, width: float) -> float:
    """Return how high the lines of a strip of a width are, both in inches."""
    return _boxes(texts_of(view, "tokens"), theme, width)[1] * _line(theme)


def _line(theme: Theme) -> float:
    return _LINE * theme.text / _POINTS_PER_INCH


def _boxes(tokens: list[str], theme: Theme, width: float) -> tuple[list[_Box], int]:
    """Lay tokens out in lines of a width in inches; return them and the line count."""
    em = theme.text / _POINTS_PER_INCH
    boxes: list[_Box] = []
    left, line = 0.0, 0
    for token in tokens:
        text = literal(token, theme, longest=_LONGEST)
        room = text_extent(text, theme, theme.text, family=theme.mono) + 2 * _PAD * em
        if left and left + room > width:
            left, line = 0.0, line + 1
        boxes.append((left, room, float(line), text))
        left += room + _GAP * em
        if token.endswith("\n"):
            left, line = 0.0, line + 1
    return boxes, line + bool(left) or 1


def _draw_boxes(ax: "Axes", view: View, theme: Theme, boxes: list[_Box]) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import to_rgba
    from matplotlib.patches import FancyBboxPatch

    mappable = mappable_of(view)
    values = view.arrays["values"]
    colors = np.array(mappable.to_rgba(np.nan_to_num(values, posinf=0.0, neginf=0.0)))
    kinds = (np.isnan(values), values == np.inf, values == -np.inf)
    for where, color in zip(kinds, kind_colors(theme), strict=True):
        colors[where] = to_rgba(color)
    pitch = _line(theme)
    patches = [
        FancyBboxPatch(
            (left, line * pitch + 0.1 * pitch),
            width,
            0.8 * pitch,
            boxstyle=f"round,pad=0,rounding_size={0.12 * pitch}",
        )
        for left, width, line, _ in boxes
    ]
    ax.add_collection(
        PatchCollection(patches, facecolors=colors, edgecolors="none", clip_on=False)
    )
    font: dict[str, Any] = {
        "fontfamily": list(installed(theme.mono)),
        "fontsize": theme.text,
    }
    for (left, width, line, text), color in zip(boxes, colors, strict=True):
        ax.text(
            left + width / 2.0,
            (line + 0.52) * pitch,
            text,
            ha="center",
            va="center_baseline",
            color=ink_on(color),
            parse_math=False,
            **font,
        )
