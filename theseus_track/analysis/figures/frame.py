"""What the drawings of bars, lines and points share: place, axes, notes and legend."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from theseus_track.analysis.figures.canvas import (
    attach,
    new_figure,
    style_axes,
)
from theseus_track.analysis.figures.cells import TIMES
from theseus_track.analysis.figures.text import installed, literal
from theseus_track.analysis.figures.texts import caption_axes, label_axes, room_for
from theseus_track.analysis.figures.theme import Theme
from theseus_track.analysis.figures.ticks import label_cells, text_width
from theseus_track.errors import BadInput
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "add_legend",
    "finish",
    "label_places",
    "labelled",
    "place",
    "room_of",
    "say_nothing",
]

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
        ticks = text_width(view.ticks.get("y", ()), theme)
        left, above = room_for(
            theme,
            title=labelled(view.labels.get("title")),
            ylabel=labelled(view.labels.get("y")),
            size=size,
            beside=beside,
        )
        width = size[0] + 0.5 + left + beside + ticks
        made = new_figure(width, size[1] + 0.65 + above, theme)
        ax = made.subplots()
    else:
        made, size = room_of(view, ax)
    style_axes(ax, theme, grid=grid)
    return made, ax, size


def room_of(view: View, ax: "Axes") -> "tuple[Figure, tuple[float, float]]":
    """Return the figure of given axes, and their size in inches.

    Raises:
        BadInput: When the axes belong to no figure.
    """
    made = ax.get_figure(root=True)
    if made is None:
        raise BadInput("ax= belongs to no figure. Pass axes of a figure.")
    panel: Any = view.scale.get("panel")
    if panel:
        # One of several panels: the layout that makes the room runs later.
        return made, (panel[0], panel[1])
    width, height = made.get_size_inches()
    box = ax.get_position()
    return made, (box.width * width, box.height * height)


def say_nothing(ax: "Axes", theme: Theme, shape: Sequence[int] = ()) -> None:
    """Say that there is no data where it would be, and leave the ticks out."""
    # Not by setting no ticks, which other panels on the same axis would share.
    ax.tick_params(bottom=False, left=False, labelbottom=False, labelleft=False)
    ax.text(
        0.5,
        0.5,
        f"no data (shape {TIMES.join(map(str, shape))})" if shape else "no data",
        transform=ax.transAxes,
        fontsize=theme.title,
        fontfamily=list(installed(theme.family)),
        color=theme.quiet,
        ha="center",
        va="center",
    )


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
    beside = _legend_width(view, theme)
    label_axes(
        ax,
        theme,
        title=texts["title"],
        xlabel=texts["x"],
        ylabel=texts["y"],
        size=size,
        beside=beside,
    )
    own = labels.get("notes")
    written = [*(map(str, own) if isinstance(own, list) else ()), *notes]
    caption_axes(ax, theme, written, width=size[0] + beside)
    entries = labels.get("legend")
    if isinstance(entries, list) and entries:
        add_legend(
            ax,
            view.kind,
            theme,
            entries,
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            borderaxespad=0.0,
        )
    return attach(made, ax, view)


def labelled(value: object) -> str | None:
    """Return a label of a View as text, or None where there is none."""
    return None if value is None else str(value)


def _legend_width(view: View, theme: Theme) -> float:
    entries = view.labels.get("legend")
    if not isinstance(entries, list) or not entries:
        return 0.0
    texts = [e["label"] for e in entries if isinstance(e, dict)]
    return text_width(texts, theme) + _LEGEND_MARGIN


def add_legend(
    owner: "Axes | Figure",
    kind: str,
    theme: Theme,
    entries: Sequence[Any],
    **where: Any,
) -> None:
    """Add a legend to axes or to a figure.

    Args:
        owner: Whose legend it is.
        kind: The kind of View, which decides the handles.
        theme: The look.
        entries: As `legend_entries` returns them.
        **where: Matplotlib's keywords for its place.
    """
    handles = [_handle(entry, kind, theme) for entry in entries]
    texts = [literal(entry["label"], theme) for entry in entries]
    legend = owner.legend(
        handles,
        texts,
        **where,
        numpoints=1,
        frameon=False,
        labelcolor=theme.ink,
        prop={"family": list(installed(theme.family)), "size": theme.small},
    )
    for text, entry in zip(legend.get_texts(), entries, strict=True):
        text.set_parse_math(False)
        if len(entry) == 1:
            text.set_color(theme.quiet)


def _handle(entry: Mapping[str, Any], kind: str, theme: Theme) -> Any:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if len(entry) == 1:
        return Patch(visible=False)
    color = entry.get("color", theme.ink)
    if kind in ("bar", "histogram"):
        return Patch(facecolor=color, edgecolor=color)
    dash = entry.get("dash") or []
    line = kind == "line"
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
