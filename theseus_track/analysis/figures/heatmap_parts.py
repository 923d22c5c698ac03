"""Draw the pieces of a heatmap: cells, their texts and labels, and the colour bar."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from theseus_track.analysis.figures.canvas import style_axes
from theseus_track.analysis.figures.colour import colormap, ink_on
from theseus_track.analysis.figures.text import installed, literal
from theseus_track.analysis.figures.theme import Theme
from theseus_track.analysis.figures.ticks import count_cells, label_cells, text_width
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

__all__ = [
    "FLAT",
    "add_bar",
    "annotate",
    "axes_size",
    "draw_cells",
    "kind_colors",
    "label_rows_and_columns",
    "mappable_of",
    "marks_of",
    "norm_of",
    "painted",
    "text_of",
    "texts_of",
]

FLAT = 1.3
"""Axes lower than this, in inches, have their colour bar below."""

_CELL = 0.28
"""Side of a cell in inches, as long as all of them fit."""
_LARGEST = (4.8, 4.4)
_SMALLEST = (1.9, 0.5)
_KINDS = ("NaN", "+inf", "-inf")


def axes_size(shape: tuple[int, ...], view: View, theme: Theme) -> tuple[float, float]:
    """Return the size of the axes in inches that gives each cell its room."""
    rows, columns = shape[-2:] if len(shape) > 1 else (1, 1)
    cell_w = cell_h = _CELL
    if view.labels.get("annot") is not None:
        texts = np.asarray(view.labels["annot"], object).ravel()
        cell_w = max(cell_w, text_width(texts, theme) + 0.1)
    shrink = min(1.0, _LARGEST[0] / (columns * cell_w), _LARGEST[1] / (rows * cell_h))
    width = max(columns * cell_w * shrink, _SMALLEST[0])
    height = max(rows * cell_h * shrink, _SMALLEST[1])
    return width, height


def draw_cells(
    ax: "Axes",
    view: View,
    theme: Theme,
    values: np.ndarray,
    mask: np.ndarray | None,
) -> "AxesImage":
    """Draw finite cells by colormap and, over it, the others in their own colours."""
    scale: Any = view.scale
    style_axes(ax, theme, frame=True)
    rows, columns = values.shape
    hidden = ~np.isfinite(values) if mask is None else ~np.isfinite(values) | mask
    # Seaborn's coordinates: cell i spans i to i + 1, the first row is on top.
    place: dict[str, Any] = {
        "extent": (0, columns, rows, 0),
        "origin": "upper",
        # "none" embeds every cell in a PDF; "nearest" would resample it to the dpi.
        "interpolation": "none",
        "aspect": "equal" if scale.get("square") else "auto",
    }
    options: dict[str, Any] = scale["image_options"]
    image: AxesImage = ax.imshow(
        np.ma.array(values, mask=hidden),
        cmap=colormap(scale),
        norm=norm_of(scale),
        **place,
        **options,
    )
    kinds = np.stack([np.isnan(values), values == np.inf, values == -np.inf])
    if mask is not None:
        kinds &= ~mask
    if kinds.any():
        ax.imshow(painted(kinds, theme), **place, **options)
    width, color = scale["linewidths"], scale["linecolor"]
    if color == "white":
        # Seaborn's default, which means: as the paper.
        color = theme.paper
    if width:
        ax.hlines(range(1, rows), 0, columns, colors=color, linewidths=width)
        ax.vlines(range(1, columns), 0, rows, colors=color, linewidths=width)
    ax.set(xlim=(0, columns), ylim=(rows, 0))
    return image


def painted(kinds: np.ndarray, theme: Theme) -> np.ndarray:
    """Return an image [row, column, RGBA] that is clear but for non-finite cells."""
    from matplotlib.colors import to_rgba

    image = np.zeros((*kinds.shape[1:], 4), np.float32)
    for where, color in zip(kinds, kind_colors(theme), strict=True):
        image[where] = to_rgba(color)
    return image


def kind_colors(theme: Theme) -> tuple[str, str, str]:
    """Return the colours of NaN, +inf and -inf."""
    return theme.nan, theme.posinf, theme.neginf


def norm_of(scale: Mapping[str, Any]) -> "Normalize":
    """Return matplotlib's norm of the scale of a View."""
    from matplotlib.colors import LogNorm, Normalize

    cls = LogNorm if scale.get("norm") == "log" else Normalize
    return cls(scale["vmin"], scale["vmax"])


def mappable_of(view: View) -> "ScalarMappable":
    """Return what a colour bar explains: the colours of a View's scale."""
    from matplotlib.cm import ScalarMappable

    return ScalarMappable(norm_of(view.scale), colormap(view.scale))


def annotate(
    ax: "Axes",
    image: "AxesImage",
    view: View,
    theme: Theme,
    texts: Any,
    size: tuple[float, float],
) -> None:
    """Write a text into each cell, in ink that its colour lets one read."""
    if texts is None:
        return
    written = np.asarray(texts, object)
    rows, columns = written.shape
    widest = text_width(written.ravel(), theme) or 1.0
    fit = min(1.0, 0.92 * size[0] / columns / widest, 0.8 * size[1] / rows / 0.15)
    values = view.arrays["values"].reshape(-1, rows, columns)[0]
    colors = image.to_rgba(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0))
    scale: Any = view.scale
    options: dict[str, Any] = {
        "ha": "center",
        "va": "center",
        "fontsize": max(3.0, theme.small * fit),
        "fontfamily": list(installed(theme.family)),
        **scale["annot_options"],
    }
    for (row, column), text in np.ndenumerate(written):
        if text:
            ink = (
                ink_on(colors[row, column])
                if np.isfinite(values[row, column])
                else theme.ink
            )
            shown = literal(text, theme)
            kwargs = {"color": ink, **options}
            ax.text(column + 0.5, row + 0.5, shown, parse_math=False, **kwargs)


def label_rows_and_columns(
    ax: "Axes",
    view: View,
    theme: Theme,
    size: tuple[float, float],
    shape: Sequence[int],
) -> list[str]:
    """Label rows and columns; return what to note about labels left out."""
    notes = []
    scale: Any = view.scale
    for axis, count, length, block, what in (
        ("x", shape[-1], size[0], scale["blocks"][1], "column"),
        ("y", shape[-2], size[1], scale["blocks"][0], "row"),
    ):
        total = scale[f"{axis}_total"]
        if total is not None:
            count_cells(ax, axis, total, block=block, length=length, theme=theme)
            continue
        step = label_cells(
            ax,
            axis,
            list(view.ticks.get(axis, ())),
            positions=[index + 0.5 for index in range(count)],
            cell=length / count,
            step=scale[f"{axis}_step"],
            theme=theme,
        )
        if step > 1:
            notes.append(f"every {_ordinal(step)} {what} label")
    return notes


def marks_of(view: View, theme: Theme) -> tuple[tuple[str, str], ...]:
    """Return (colour, text) for each kind of non-finite cell that occurs."""
    counts = view.labels.get("counts")
    if not isinstance(counts, Mapping):
        return ()
    total = view.scale.get("of")
    colors = dict(zip(_KINDS, kind_colors(theme), strict=True))
    pairs = [(colors[kind], f"{count} {kind}") for kind, count in counts.items()]
    if pairs:
        color, text = pairs[-1]
        pairs[-1] = (color, f"{text} of {total}")
    return tuple(pairs)


def add_bar(
    made: "Figure",
    image: "ScalarMappable",
    view: View,
    theme: Theme,
    ax: Any,
    cbar_ax: "Axes | None",
    size: tuple[float, float],
) -> None:
    """Add a colour bar beside the axes, or below flat ones, or in `cbar_ax`."""
    scale: Any = view.scale
    flat = size[1] < FLAT and cbar_ax is None
    options: dict[str, Any] = {"ax": ax} if cbar_ax is None else {"cax": cbar_ax}
    if flat:
        options |= {"location": "bottom", "aspect": 40}
    elif cbar_ax is None and not isinstance(ax, list) and not scale["colorbar_options"]:
        # As high as the cells, also where those are square; a bar that takes room
        # from the axes would be as high as the room.
        wide = max(0.1, min(0.16, 0.04 * size[1])) / size[0]
        place = (1.0 + 0.08 / size[0], 0.0, wide, 1.0)
        options = {"cax": ax.inset_axes(place)}
    elif cbar_ax is None:
        options |= {"aspect": 25 if size[1] > 2.0 else 14, "pad": 0.02}
    # An arrow says that values lie beyond the range, where they look like its end.
    options |= {"extend": scale.get("extend", "neither"), "extendfrac": 0.03}
    options |= scale["colorbar_options"]
    if scale["vmin"] == scale["vmax"]:
        options.setdefault("ticks", [scale["vmin"]])
    bar = made.colorbar(image, **options)
    bar.outline.set_visible(False)
    font = list(installed(theme.family))
    bar.ax.minorticks_off()
    bar.ax.tick_params(
        which="both",
        direction="out",
        pad=3.0,
        width=theme.stroke,
        length=2.5,
        labelfontfamily=font,
        labelsize=theme.small,
        labelcolor=theme.ink,
        color=theme.axis,
    )
    for axis in (bar.ax.xaxis, bar.ax.yaxis):
        axis.label.set(fontsize=theme.text, color=theme.ink, fontfamily=font)
        axis.offsetText.set(fontsize=theme.small, color=theme.ink, fontfamily=font)


def text_of(view: View, role: str) -> str | None:
    """Return a label of a View, or None where it has none."""
    value = view.labels.get(role)
    return None if value is None else str(value)


def texts_of(view: View, role: str) -> list[str]:
    """Return a list of labels of a View; empty where it has none."""
    value = view.labels.get(role)
    return [str(item) for item in value] if isinstance(value, list) else []


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
