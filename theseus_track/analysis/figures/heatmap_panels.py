"""Draw the View of a three-dimensional heatmap as small multiples."""

import math
from typing import TYPE_CHECKING

from theseus_track.analysis.figures.canvas import drawable, label_axes, new_figure
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
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_panels"]

_LARGEST_PANELS = (8.0, 7.0)


def draw_panels(view: View, theme: Theme) -> "Figure":
    """Draw [panel, row, column] as small multiples on one scale."""
    values, mask = view.arrays["values"], view.arrays.get("mask")
    count, rows, columns = values.shape
    one = axes_size((rows, columns), view, theme)
    across = _panels_across(count, one)
    down = math.ceil(count / across)
    shrink = min(
        1.0,
        _LARGEST_PANELS[0] / (across * one[0]),
        _LARGEST_PANELS[1] / (down * one[1]),
    )
    size = (max(0.7, one[0] * shrink), max(0.5, one[1] * shrink))
    made = new_figure(
        across * (size[0] + 0.12) + 1.5, down * (size[1] + 0.3) + 1.0, theme
    )
    grid = made.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    image = None
    names = texts_of(view, "panels")
    annot = view.labels.get("annot")
    for index, ax in enumerate(grid.flat):
        if index >= count:
            ax.set_visible(False)
            continue
        hidden = None if mask is None else mask[index]
        image = draw_cells(ax, view, theme, values[index], hidden)
        panel = View(kind="heatmap", arrays={"values": values[index]}, scale=view.scale)
        annotate(ax, image, panel, theme, annot and annot[index], size)  # type: ignore[index]
        label_axes(ax, theme, title=names[index], xlabel=None, ylabel=None)
        ax.title.set_fontsize(theme.small)
        ax.set_title(names[index], loc="left", fontsize=theme.small, pad=2.5)
    label_rows_and_columns(grid[-1, 0], view, theme, size, values.shape)
    for ax in grid.flat:
        ax.tick_params(labelbottom=ax in grid[-1], labelleft=ax in grid[:, 0])
    _title_panels(made, view, theme)
    if image is not None and view.scale.get("colorbar", True):
        shown = list(grid.flat[:count])
        add_bar(
            made,
            image,
            view,
            theme,
            shown,
            None,
            (down * size[0], max(down * size[1], FLAT)),
        )
    made.theseus_view = view  # type: ignore[attr-defined]
    return made


def _panels_across(count: int, one: tuple[float, float]) -> int:
    """Return how many panels to put in a row, so that the page is not too tall."""
    wide = math.sqrt(count * one[1] / one[0] * _LARGEST_PANELS[0] / _LARGEST_PANELS[1])
    return min(count, max(1, math.ceil(wide)))


def _title_panels(made: "Figure", view: View, theme: Theme) -> None:
    from matplotlib.patches import Patch

    font = {"fontfamily": list(installed(theme.family)), "color": theme.ink}
    title = text_of(view, "title")
    lines = [drawable(title, theme)] if title else []
    notes = "; ".join(texts_of(view, "notes"))
    if title or notes:
        made.suptitle(
            "\n".join([*lines, *([notes] if notes else [])]),
            x=0.01,
            ha="left",
            fontsize=theme.title,
            **font,
        )
    for set_label, role in ((made.supxlabel, "x"), (made.supylabel, "y")):
        label = text_of(view, role)
        if label:
            set_label(drawable(label, theme), fontsize=theme.text, **font)
    marks = marks_of(view, theme)
    if marks:
        made.legend(
            handles=[Patch(facecolor=color, label=text) for color, text in marks],
            loc="outside lower left",
            ncols=len(marks),
            frameon=False,
            fontsize=theme.small,
            labelcolor=theme.quiet,
        )
