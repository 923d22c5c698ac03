"""The `heatmap` helper: seaborn's signature over a fast, honest drawing."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from theseus_track.analysis.figures.arrays import json_options, plain
from theseus_track.analysis.figures.canvas import look_for
from theseus_track.analysis.figures.cells import Cells, cell_labels, read_cells
from theseus_track.analysis.figures.colour import color_scale
from theseus_track.analysis.figures.drawing import paint
from theseus_track.errors import BadInput
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["heatmap"]

_MAX_TEXTS = 2500
_IMAGE_OPTIONS = ("alpha", "rasterized", "zorder")


def heatmap(  # noqa: D417 (the other parameters are seaborn's)
    data: Any,
    *,
    vmin: float | None = None,
    vmax: float | None = None,
    cmap: Any = None,
    center: float | None = None,
    robust: bool = False,
    annot: Any = None,
    fmt: str = ".2g",
    annot_kws: Mapping[str, Any] | None = None,
    linewidths: float = 0,
    linecolor: str = "white",
    cbar: bool = True,
    cbar_kws: Mapping[str, Any] | None = None,
    cbar_ax: "Axes | None" = None,
    square: bool = False,
    xticklabels: Any = "auto",
    yticklabels: Any = "auto",
    mask: Any = None,
    ax: "Axes | None" = None,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    theme: str | None = None,
    **kwargs: Any,
) -> "Figure":
    """Draw numbers as colours; the parameters and meanings of `seaborn.heatmap`.

    Colours are chosen from the data: a diverging map centred on 0 for values of both
    signs, else a sequential one; the range comes from finite values. NaN, +inf and
    -inf have their own colours and are counted. Arrays above 512 cells a side are
    averaged in blocks, and the figure says so; the View keeps the lowest and the
    highest value of each block as well.

    Args:
        data: [row, column]; [column], drawn as one row; a number, shown as text;
            [panel, row, column], drawn as small multiples on one scale. A data frame
            names rows and columns; a dict names the rows or panels, its values.
        title: Above the axes.
        xlabel: Below the axes; by default the name of a data frame's columns.
        ylabel: Beside the axes; by default the name of a data frame's index.
        theme: "light", "dark", "serif" or "serif-dark"; by default that of the figure
            of `ax`, else "light".
        **kwargs: `norm` ("linear" or "log"), `alpha`, `rasterized`, `zorder`.

    Returns:
        A new figure, or the figure of `ax`; it carries its View.

    Raises:
        BadInput: When the data cannot be drawn, or a parameter cannot be honoured.

    Example:
        >>> import numpy as np
        >>> from theseus_track.analysis.figures import heatmap, view_of
        >>> view_of(heatmap(np.eye(3), xlabel="Feature")).arrays["values"].shape
        (3, 3)
    """
    look = look_for(theme, ax)
    cells = read_cells(data, mask)
    texts = _annotations(annot, data, cells, fmt)
    options = _image_options(kwargs)
    scale = color_scale(
        cells.values[cells.shown],
        look,
        vmin=vmin,
        vmax=vmax,
        center=center,
        robust=robust,
        cmap=cmap,
        norm=kwargs.get("norm"),
    )
    y_labels, y_step = cell_labels(
        yticklabels, cells.rows, cells.extent[0], cells.blocks[0], "yticklabels"
    )
    x_labels, x_step = cell_labels(
        xticklabels, cells.columns, cells.extent[1], cells.blocks[1], "xticklabels"
    )
    labels: dict[str, Any] = {
        "title": title,
        "x": cells.column_name if xlabel is None else xlabel,
        "y": cells.row_name if ylabel is None else ylabel,
        "panels": list(cells.panels),
        "annot": texts,
        "notes": list(cells.notes),
        "counts": {**cells.counts},
    }
    drawing: dict[str, Any] = {
        **scale,
        "of": cells.size,
        "square": bool(square),
        "linewidths": float(linewidths),
        "linecolor": linecolor,
        "colorbar": bool(cbar),
        "colorbar_options": json_options(cbar_kws, "cbar_kws"),
        "annot_options": json_options(annot_kws, "annot_kws"),
        "image_options": options,
        "x_step": x_step,
        "y_step": y_step,
        "x_total": _counted(xticklabels, cells.columns, cells.extent[1]),
        "y_total": _counted(yticklabels, cells.rows, cells.extent[0]),
        "blocks": list(cells.blocks),
        "theme": look.name,
    }
    view = View(
        kind="heatmap",
        arrays=_arrays(cells, masked=mask is not None),
        labels=labels,
        ticks={"x": x_labels, "y": y_labels},
        scale=drawing,
        caption=_caption(cells),
    )
    return paint(view, look, ax=ax, cbar_ax=cbar_ax)


def _counted(option: Any, names: Any, total: int) -> int | None:
    """Return how many cells to number, or None where they have labels."""
    return total if isinstance(option, str) and names is None else None


def _arrays(cells: Cells, *, masked: bool) -> dict[str, np.ndarray]:
    """Return the drawn arrays, in float32 where that keeps them finite."""
    finite = cells.values[np.isfinite(cells.values)]
    # A quarter, so that matplotlib's differences of them stay finite as well.
    largest = np.finfo(np.float32).max / 4.0
    fits = not finite.size or np.abs(finite).max() <= largest
    dtype = np.float32 if fits else np.float64
    kept = {"values": cells.values, "low": cells.low, "high": cells.high}
    arrays = {
        role: array.astype(dtype) for role, array in kept.items() if array is not None
    }
    return {**arrays, "mask": ~cells.shown} if masked else arrays


def _annotations(annot: Any, data: Any, cells: Cells, fmt: str) -> list[Any] | None:
    """Return a text per cell, "" for a hidden one, in nested lists; or None."""
    if annot is None or annot is False:
        return None
    if cells.values.size > _MAX_TEXTS or cells.blocks != (1, 1):
        raise BadInput(
            f"annot would write a text into each of {cells.size} cells; at most "
            f"{_MAX_TEXTS} can be read. Draw a part of the data or leave annot out."
        )
    written = plain(data if annot is True else annot, "annot")
    if annot is True and written.dtype.kind not in "iu":
        written = cells.values
    if written.ndim == 1:
        written = written[np.newaxis]
    if written.shape != cells.values.shape:
        raise BadInput(
            f"annot has shape {written.shape} and data {cells.values.shape}; they must "
            "be equal."
        )
    texts = np.full(cells.values.shape, "", object)
    for index in np.argwhere(cells.shown):
        texts[tuple(index)] = _formatted(written[tuple(index)], fmt)
    nested: list[Any] = texts.tolist()
    return nested


def _formatted(value: object, fmt: str) -> str:
    try:
        return format(value, fmt)
    except (TypeError, ValueError) as error:
        raise BadInput(
            f"fmt={fmt!r} does not fit the annotation {value!r:.60}: {error}. Use a "
            "format such as '.2f' for numbers, or fmt='' for text."
        ) from error


def _image_options(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(kwargs) - {"norm", *_IMAGE_OPTIONS})
    if unknown:
        raise BadInput(
            f"heatmap cannot honour {unknown[0]}={kwargs[unknown[0]]!r:.60}: cells are "
            "drawn as one image, not as a mesh. Of matplotlib's options it takes norm, "
            f"{', '.join(_IMAGE_OPTIONS)}; for lines between cells use linewidths and "
            "linecolor."
        )
    kept = {key: value for key, value in kwargs.items() if key != "norm"}
    return json_options(kept, "heatmap")


def _caption(cells: Cells) -> str:
    counts = [f"{n} {kind} of {cells.size}" for kind, n in cells.counts.items()]
    return "; ".join([cells.summary, *counts, *cells.notes])
