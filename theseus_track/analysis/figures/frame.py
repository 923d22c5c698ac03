"""What the drawings of bars, lines and points share: place, axes, notes and legend."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from theseus_track.analysis.figures.canvas import (
    attach,
    caption_axes,
    label_axes,
    new_figure,
    style_axes,
)
from theseus_track.analysis.figures.text import installed, literal
from theseus_track.analysis.figures.theme import Theme
from theseus_track.analysis.figures.ticks import label_cells, text_width
from theseus_track.errors import BadInput
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["finish", "label_places", "labelled", "place"]

_LEGEND_MARGIN = 0.55


def place(
    view: View, theme: Theme, ax: "Axes | None", size: tuple[float, float], grid: str
) -> "tuple[Figure, Axes, tuple[float, float]]":
    """Return the figure, the styled axes and their expected size in inches.

    Args:
        view: What will be drawn.
        theme: The look.
        ax: Axes to draw into, or None for a new figure.
        size: Width and height of new axes, in inches.
        grid: The axis whose ticks get grid lines.
    """
    if ax is None:
        beside = _legend_width(view, theme)
        ticks = text_width([str(text)[:40] for text in view.ticks.get("y", ())], theme)
        made = new_figure(size[0] + 0.8 + beside + ticks, size[1] + 0.9, theme)
        ax = made.subplots()
    else:
        owner = ax.get_figure(root=True)
        if owner is None:
            raise BadInput("ax= belongs to no figure. Pass axes of a figure.")
        made = owner
        width, height = made.get_size_inches()
        box = ax.get_position()
        size = (box.width * width, box.height * height)
    style_axes(ax, theme, grid=grid)
    return made, ax, size


def label_places(
    ax: "Axes",
    axis: str,
    labels: Sequence[str],
    positions: Sequence[float],
    size: tuple[float, float],
    theme: Theme,
) -> list[str]:
    """Label categories, thinned to fit; return a note when some are left out."""
    if not labels:
        return []
    length = size[0] if axis == "x" else size[1]
    step = label_cells(
        ax,
        axis,
        labels,
        positions=positions,
        cell=length / len(labels),
        step=None,
        theme=theme,
    )
    return [f"1 of {step} labels shown"] if step > 1 else []


def finish(
    made: "Figure",
    ax: "Axes",
    view: View,
    theme: Theme,
    *,
    size: tuple[float, float],
    notes: Sequence[str] = (),
) -> "Figure":
    """Write labels, notes and legend, and leave the View."""
    labels = view.labels
    texts = {role: labelled(labels.get(role)) for role in ("title", "x", "y")}
    label_axes(ax, theme, title=texts["title"], xlabel=texts["x"], ylabel=texts["y"])
    own = labels.get("notes")
    written = [*(map(str, own) if isinstance(own, list) else ()), *notes]
    caption_axes(ax, theme, written, width=size[0])
    entries = labels.get("legend")
    if isinstance(entries, list) and entries:
        _add_legend(ax, view, theme, entries)
    return attach(made, ax, view)


def labelled(value: object) -> str | None:
    """Return a label of a View as text, or None where there is none."""
    return None if value is None else str(value)


def _legend_width(view: View, theme: Theme) -> float:
    entries = view.labels.get("legend")
    if not isinstance(entries, list) or not entries:
        return 0.0
    texts = [str(e["label"])[:40] for e in entries if isinstance(e, dict)]
    return text_width(texts, theme) + _LEGEND_MARGIN


def _add_legend(ax: "Axes", view: View, theme: Theme, entries: Sequence[Any]) -> None:
    handles = [_handle(entry, view, theme) for entry in entries]
    texts = [literal(entry["label"], theme) for entry in entries]
    legend = ax.legend(
        handles,
        texts,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        numpoints=1,
        frameon=False,
        labelcolor=theme.ink,
        prop={"family": list(installed(theme.family)), "size": theme.small},
    )
    for text, entry in zip(legend.get_texts(), entries, strict=True):
        text.set_parse_math(False)
        if len(entry) == 1:
            text.set_color(theme.quiet)


def _handle(entry: Mapping[str, Any], view: View, theme: Theme) -> Any:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if len(entry) == 1:
        return Patch(visible=False)
    color = entry.get("color", theme.ink)
    if view.kind == "bar":
        return Patch(facecolor=color, edgecolor=color)
    dash = entry.get("dash") or []
    line = view.kind == "line"
    marker = entry.get("marker") or ("" if line else "o")
    return Line2D(
        [],
        [],
        color=color,
        linewidth=entry.get("width", theme.line),
        linestyle=((0, tuple(dash)) if dash else "-") if line else "",
        marker=marker,
        markersize=float(entry.get("area", 36.0)) ** 0.5,
        markeredgecolor=theme.paper,
        markeredgewidth=0.5,
        solid_capstyle="round",
    )
