"""Read the data of a heatmap into cells: values, hidden cells, names and notes."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from theseus_track.analysis.figures.arrays import bounded, dtype_of, numbers, plain
from theseus_track.analysis.figures.reduction import block_size, extremes, reduced
from theseus_track.errors import BadInput

__all__ = ["TIMES", "Cells", "cell_labels", "count_kinds", "read_cells"]

TIMES = "\u00d7"
"""The multiplication sign, for shapes."""

_MAX_DIMS = 3
_MAX_PANELS = 64


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """What a heatmap draws.

    Attributes:
        values: [row, column] or [panel, row, column], or empty, or 0-d; float64.
        shown: The same shape; False where the mask hides the cell.
        extent: Rows and columns of the data.
        blocks: How many rows and columns of the data became one cell.
        low: The lowest finite value of each block, shaped as `values`; None without
            reduction.
        high: The highest, in the same way.
        panels: The name of each panel; () without panels.
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
    low: np.ndarray | None
    high: np.ndarray | None
    panels: tuple[str, ...]
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
    given = data
    data, names = _from_mapping(given)
    values = numbers(data, "data")
    if values.ndim > _MAX_DIMS:
        raise BadInput(
            f"A heatmap draws at most {_MAX_DIMS} dimensions, not shape "
            f"{values.shape}. Choose an index or take a mean, such as data[0]."
        )
    shown = _shown(mask, values)
    single_row = values.ndim == 1
    size, counts = int(shown.sum()), count_kinds(values, shown)
    summary = _summary(values, shown, dtype_of(given))
    if single_row:
        values, shown = values[np.newaxis], shown[np.newaxis]
    notes: list[str] = []
    values, shown, panels = _choose_panels(values, shown, names, notes)
    extent = (values.shape[-2], values.shape[-1]) if values.ndim else (0, 0)
    blocks = (block_size(extent[0]), block_size(extent[1])) if values.size else (1, 1)
    if blocks != (1, 1):
        across = f"{blocks[0]}{TIMES}{blocks[1]}"
        notes.append(f"each cell is the mean of {across} values")
    whole = bounded(values, notes)
    ends = (None, None) if blocks == (1, 1) else extremes(whole, shown, blocks)
    values, shown = reduced(whole, shown, blocks)
    rows, row_name = (None, None) if single_row else _names(data, "index")
    if names and not panels:
        rows = names
    columns, column_name = _names(data, "index" if single_row else "columns")
    return Cells(
        values=values,
        shown=shown,
        extent=extent,
        blocks=blocks,
        low=ends[0],
        high=ends[1],
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


def _from_mapping(data: Any) -> tuple[Any, tuple[str, ...]]:
    """Return a mapping as one array with a leading axis of its keys, and those."""
    if not isinstance(data, Mapping) or not data:
        return data, ()
    names = tuple(map(str, data))
    items = [numbers(data[key], f"data[{key!r}]") for key in data]
    shapes = {name: item.shape for name, item in zip(names, items, strict=True)}
    if len(set(shapes.values())) > 1:
        told = ", ".join(
            f"{name!r} {shape}" for name, shape in list(shapes.items())[:6]
        )
        raise BadInput(
            f"The arrays of a dict are rows or panels of one heatmap, and differ in "
            f"shape: {told}. Use grid('heatmap', data), which draws each as it is."
        )
    stacked = np.stack(items)
    return (stacked[:, np.newaxis] if stacked.ndim == 1 else stacked), names


def _choose_panels(
    values: np.ndarray, shown: np.ndarray, names: Sequence[str], notes: list[str]
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    if values.ndim < _MAX_DIMS:
        return values, shown, ()
    count = values.shape[0]
    names = names or tuple(map(str, range(count)))
    if count <= _MAX_PANELS:
        return values, shown, tuple(names)
    chosen = np.linspace(0, count - 1, _MAX_PANELS).round().astype(int)
    notes.append(f"{_MAX_PANELS} of {count} panels")
    return values[chosen], shown[chosen], tuple(names[index] for index in chosen)


def _names(data: Any, axis: str) -> tuple[tuple[str, ...] | None, str | None]:
    """Return the labels and the name of a data frame's or series' axis."""
    index = getattr(data, axis, None)
    if not hasattr(data, "to_numpy") or index is None:
        return None, None
    name = getattr(index, "name", None)
    return tuple(map(str, index)), None if name is None else str(name)


def count_kinds(values: np.ndarray, shown: np.ndarray) -> dict[str, int]:
    """Return kind -> count for the shown values that are "NaN", "+inf" or "-inf"."""
    if np.isfinite(values).all():
        return {}
    kinds = {
        "NaN": np.isnan(values),
        "+inf": values == np.inf,
        "-inf": values == -np.inf,
    }
    sums = {kind: int((where & shown).sum()) for kind, where in kinds.items()}
    return {kind: count for kind, count in sums.items() if count}


def _summary(values: np.ndarray, shown: np.ndarray, dtype: str) -> str:
    shape = f"{TIMES.join(map(str, values.shape)) or 'one number'} {dtype}".strip()
    finite = np.isfinite(values) & shown
    count = int(finite.sum())
    if not count:
        return f"{shape}, no finite value"
    low = values.min(where=finite, initial=np.inf)
    high = values.max(where=finite, initial=-np.inf)
    # Divided before it is summed: the sum of two of the largest floats overflows.
    mean = np.sum(values / count, where=finite)
    return f"{shape}, {low:.4g} to {high:.4g}, mean {mean:.4g}"
