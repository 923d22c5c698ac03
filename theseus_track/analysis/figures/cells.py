"""Read the data of a heatmap into cells: values, hidden cells, names and notes."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from theseus_track.analysis.figures.arrays import numbers, plain
from theseus_track.analysis.figures.reduction import block_size, reduced
from theseus_track.errors import BadInput

__all__ = ["TIMES", "Cells", "cell_labels", "read_cells"]

TIMES = "\u00d7"
"""The multiplication sign, for shapes."""

_MAX_DIMS = 3
_MAX_PANELS = 64
_LARGEST = 1e300
"""The difference of two larger numbers would not be a number to matplotlib."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """What a heatmap draws.

    Attributes:
        values: [row, column] or [panel, row, column], or empty, or 0-d; float64.
        shown: The same shape; False where the mask hides the cell.
        extent: Rows and columns of the data.
        blocks: How many rows and columns of the data became one cell.
        panels: The index of each panel in the data; () without panels.
        rows: Names of the data's rows, or None where they are only counted.
        columns: Names of the data's columns, or None.
        row_name: What the rows are, if the data says so.
        column_name: What the columns are, if the data says so.
        counts: Non-finite kind ("NaN", "+inf", "-inf") -> how many shown cells of
            the data are of it; only those that occur.
        size: How many cells of the data are shown.
        notes: What the reader must know: reductions.
        summary: Shape and range of the data in one sentence.
    """

    values: np.ndarray
    shown: np.ndarray
    extent: tuple[int, int]
    blocks: tuple[int, int]
    panels: tuple[int, ...]
    rows: tuple[str, ...] | None
    columns: tuple[str, ...] | None
    row_name: str | None
    column_name: str | None
    counts: dict[str, int]
    size: int
    notes: tuple[str, ...]
    summary: str


def read_cells(data: Any, mask: Any) -> Cells:
    """Read data and mask, and reduce what is too large to draw.

    Raises:
        BadInput: When the data is no array of numbers of at most three dimensions,
            or the mask has another shape.
    """
    values = numbers(data, "data")
    if values.ndim > _MAX_DIMS:
        raise BadInput(
            f"A heatmap draws at most {_MAX_DIMS} dimensions, not shape "
            f"{values.shape}. Choose an index or take a mean, such as data[0]."
        )
    shown = _shown(mask, values)
    single_row = values.ndim == 1
    size, counts = int(shown.sum()), _counts(values, shown)
    summary = _summary(values, shown)
    if single_row:
        values, shown = values[np.newaxis], shown[np.newaxis]
    notes: list[str] = []
    values, shown, panels = _choose_panels(values, shown, notes)
    extent = (values.shape[-2], values.shape[-1]) if values.ndim else (0, 0)
    blocks = (block_size(extent[0]), block_size(extent[1])) if values.size else (1, 1)
    if blocks != (1, 1):
        across = f"{blocks[0]}{TIMES}{blocks[1]}"
        notes.append(f"each cell is the mean of {across} values")
    values, shown = reduced(_drawable(values, notes), shown, blocks)
    rows, row_name = (None, None) if single_row else _names(data, "index")
    columns, column_name = _names(data, "index" if single_row else "columns")
    return Cells(
        values=values,
        shown=shown,
        extent=extent,
        blocks=blocks,
        panels=panels,
        rows=() if single_row else rows,
        columns=columns,
        row_name=row_name,
        column_name=column_name,
        counts=counts,
        size=size,
        notes=tuple(notes),
        summary=summary,
    )


def cell_labels(
    option: Any, names: Sequence[str] | None, count: int, block: int, what: str
) -> tuple[list[str], int | None]:
    """Return a label per drawn cell and which of them to show.

    Args:
        option: The `xticklabels` or `yticklabels` of seaborn: "auto", True, False, an
            integer n for every n-th, or a list of labels.
        names: The names that the data brings, or None.
        count: The data's cells along this axis.
        block: How many of them became one drawn cell.
        what: The parameter, for the message.

    Returns:
        The labels, and n for every n-th, or None to choose by legibility.
    """
    step: int | None = None
    if option is False or option is None:
        return [], None
    if isinstance(option, bool):
        step = 1
    elif isinstance(option, int | np.integer):
        if option < 1:
            raise BadInput(f"{what}={option!r} must be at least 1, to show every n-th.")
        step = max(1, round(int(option) / block))
    elif not isinstance(option, str):
        names = tuple(str(label) for label in plain(option, what).ravel())
        if len(names) != count:
            raise BadInput(f"{what} has {len(names)} labels for {count} cells.")
    elif option != "auto":
        raise BadInput(f"{what}={option!r} must be 'auto', True, False, n or a list.")
    labels = [str(index) for index in range(count)] if names is None else list(names)
    kept = labels[::block]
    if kept and block > 1:
        kept[-1] = labels[-1]
    return kept, step


def _shown(mask: Any, values: np.ndarray) -> np.ndarray:
    if mask is None:
        return np.ones(values.shape, bool)
    hidden = plain(mask, "mask")
    if hidden.shape != values.shape:
        raise BadInput(
            f"mask has shape {hidden.shape} and data {values.shape}; make them equal."
        )
    return ~hidden.astype(bool)


def _choose_panels(
    values: np.ndarray, shown: np.ndarray, notes: list[str]
) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    if values.ndim < _MAX_DIMS:
        return values, shown, ()
    count = values.shape[0]
    if count <= _MAX_PANELS:
        return values, shown, tuple(range(count))
    chosen = np.linspace(0, count - 1, _MAX_PANELS).round().astype(int)
    notes.append(f"{_MAX_PANELS} of {count} panels")
    return values[chosen], shown[chosen], tuple(map(int, chosen))


def _names(data: Any, axis: str) -> tuple[tuple[str, ...] | None, str | None]:
    """Return the labels and the name of a data frame's or series' axis."""
    index = getattr(data, axis, None)
    if not hasattr(data, "to_numpy") or index is None:
        return None, None
    name = getattr(index, "name", None)
    return tuple(map(str, index)), None if name is None else str(name)


def _counts(values: np.ndarray, shown: np.ndarray) -> dict[str, int]:
    if np.isfinite(values).all():
        return {}
    kinds = {
        "NaN": np.isnan(values),
        "+inf": values == np.inf,
        "-inf": values == -np.inf,
    }
    sums = {kind: int((where & shown).sum()) for kind, where in kinds.items()}
    return {kind: count for kind, count in sums.items() if count}


def _summary(values: np.ndarray, shown: np.ndarray) -> str:
    shape = TIMES.join(map(str, values.shape)) or "one number"
    finite = np.isfinite(values) & shown
    count = int(finite.sum())
    if not count:
        return f"{shape}, no finite value"
    low = values.min(where=finite, initial=np.inf)
    high = values.max(where=finite, initial=-np.inf)
    # Divided before it is summed: the sum of two of the largest floats overflows.
    mean = np.sum(values / count, where=finite)
    return f"{shape}, {low:.4g} to {high:.4g}, mean {mean:.4g}"


def _drawable(values: np.ndarray, notes: list[str]) -> np.ndarray:
    """Bound values so that their differences are finite; note it where it matters."""
    with np.errstate(invalid="ignore"):
        beyond = np.isfinite(values) & (np.abs(values) > _LARGEST)
    if not beyond.any():
        return values
    notes.append(f"values beyond ±{_LARGEST:g} are drawn as that")
    return np.where(beyond, np.sign(values) * _LARGEST, values)
