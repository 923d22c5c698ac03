"""Read x, y and the other variables of a plot from arrays, mappings or data frames."""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from theseus_track.analysis.figures.arrays import is_numeric, is_table, numbers, plain
from theseus_track.errors import BadInput, describe_unknown

__all__ = [
    "NO_LEVELS",
    "Column",
    "Levels",
    "coordinates",
    "finite_notes",
    "levels_of",
    "optional_levels",
    "read_columns",
    "read_long",
    "read_wide",
]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One variable of a plot: its values [point] and its name, if it has one."""

    values: np.ndarray
    name: str | None = None

    @property
    def numeric(self) -> bool:
        """Whether it holds numbers; booleans count as categories."""
        return is_numeric(self.values)

    def numbers(self, role: str) -> np.ndarray:
        """Return it as float64, or raise BadInput that names the role."""
        return numbers(self.values, role)

    def where(self, kept: np.ndarray) -> "Column":
        """Return the points for which `kept` [point] is true."""
        return Column(values=self.values[kept], name=self.name)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The distinct values of a variable, in order.

    Attributes:
        values: The levels.
        index: The level of each point, [point]; -1 where the variable is missing or
            its value is not among the levels.
        numeric: Whether the levels are numbers.
        name: The variable's name.
    """

    values: list[Any]
    index: np.ndarray
    numeric: bool = False
    name: str | None = None

    @property
    def texts(self) -> list[str]:
        """The levels as text."""
        return [f"{v:g}" if self.numeric else str(v) for v in self.values]


NO_LEVELS = Levels(values=[], index=np.zeros(0, np.int64))
"""A variable that was not given."""


def read_columns(data: Any, variables: Mapping[str, Any]) -> dict[str, Column]:
    """Read the variables of long data.

    Args:
        data: A mapping or data frame with a column per name, or None.
        variables: Role -> the name of a column of `data`, or its values, or None.

    Returns:
        Role -> column, for the roles that were given; all of one length.

    Raises:
        BadInput: For an unknown column, two dimensions, or different lengths.
    """
    columns = {
        role: _column(data, value, role)
        for role, value in variables.items()
        if value is not None
    }
    lengths = {role: len(column.values) for role, column in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{role} {count}" for role, count in lengths.items())
        raise BadInput(
            f"The variables have different lengths: {told}. Make them equal."
        )
    return columns


def read_wide(data: Any) -> dict[str, Column]:
    """Read data without x and y, as seaborn does.

    Args:
        data: A sequence of numbers (`y` over its index), or a mapping, a data frame
            or a 2-D array with one series per column.

    Returns:
        `x` and `y`, and for several series `hue`, the series' name.
    """
    if is_table(data):
        series = {str(key): _plotted(data[key], f"data[{key!r}]") for key in data}
        index = plain(data.index, "data.index") if hasattr(data, "index") else None
    else:
        array = _plotted(data, "data")
        if array.ndim == 1:
            index = (
                plain(data.index, "data.index") if hasattr(data, "to_numpy") else None
            )
            where = np.arange(len(array)) if index is None else index
            name = getattr(data, "name", None)
            y = Column(values=array, name=None if name is None else str(name))
            return {"x": Column(values=where), "y": y}
        if array.ndim > 2:
            raise BadInput(
                f"data has shape {array.shape}; one series per column means two "
                "dimensions. Choose an index, such as data[0], or use heatmap."
            )
        series, index = {str(i): column for i, column in enumerate(array.T)}, None
    x = [np.arange(len(s)) if index is None else index for s in series.values()]
    names = [np.full(len(s), name, object) for name, s in series.items()]
    empty = np.zeros(0)
    return {
        "x": Column(values=np.concatenate(x) if x else empty),
        "y": Column(values=np.concatenate(list(series.values())) if series else empty),
        "hue": Column(values=np.concatenate(names) if names else empty),
    }


def read_long(
    data: Any, variables: Mapping[str, Any]
) -> tuple[dict[str, Column], bool]:
    """Read long data where x or y is given, else wide data.

    Returns:
        The columns, and whether the data was wide.
    """
    if variables.get("x") is not None or variables.get("y") is not None:
        return read_columns(data, variables), False
    if data is None:
        raise BadInput("There is nothing to draw: pass data, or x and y.")
    given = [role for role, value in variables.items() if value is not None]
    if given:
        raise BadInput(
            f"{given[0]}= needs x or y as well; data alone is drawn as series."
        )
    return read_wide(data), True


def levels_of(column: Column, order: Sequence[Any] | None, role: str) -> Levels:
    """Return the distinct values of a column.

    Args:
        column: The variable.
        order: The levels to use, in order; others are left out. None: numbers
            ascending, else as they appear.
        role: The parameter, for the message.
    """
    items = [_key(item, role) for item in column.values.tolist()]
    numeric = column.numeric
    if order is None:
        found = dict.fromkeys(item for item in items if item is not None)
        values = sorted(found) if numeric else list(found)
    else:
        values = [_key(item, role) for item in plain(list(order), role).tolist()]
    position = {value: number for number, value in enumerate(values)}
    index = np.array([position.get(item, -1) for item in items], np.int64)
    return Levels(values=values, index=index, numeric=numeric, name=column.name)


def optional_levels(
    columns: Mapping[str, Column], role: str, order: Sequence[Any] | None
) -> Levels:
    """Return the levels of a variable, or `NO_LEVELS` where it was not given."""
    if role in columns:
        return levels_of(columns[role], order, role)
    if order is not None:
        raise BadInput(f"{role}_order needs {role}. Pass {role}= or drop it.")
    return NO_LEVELS


def coordinates(column: Column, role: str) -> tuple[np.ndarray, list[str]]:
    """Return where points are along an axis, and names where those are categories."""
    if column.numeric or column.values.dtype.kind == "b":
        return column.numbers(role), []
    levels = levels_of(column, None, role)
    where = np.where(levels.index < 0, np.nan, levels.index.astype(np.float64))
    return where, levels.texts


def finite_notes(values: np.ndarray) -> list[str]:
    """Say how many numbers cannot be drawn, if any: "1 NaN of 100"."""
    counts = {"NaN": np.isnan(values).sum(), "inf": np.isinf(values).sum()}
    told = [f"{count} {kind}" for kind, count in counts.items() if count]
    return [f"{', '.join(told)} of {values.size}"] if told else []


def _key(item: Any, role: str) -> Any:
    if item is None or item != item:
        return None
    if not isinstance(item, Hashable):
        raise BadInput(f"{role} holds {item!r:.60}, which is no category or number.")
    return item


def _column(data: Any, value: Any, role: str) -> Column:
    if isinstance(value, str) or (isinstance(value, int) and is_table(data)):
        return _named(data, value, role)
    array = _plotted(value, role)
    if array.ndim != 1:
        raise BadInput(
            f"{role} has shape {array.shape}; it must have one dimension. Choose a "
            "row or column, such as values[0]."
        )
    name = getattr(value, "name", None)
    return Column(values=array, name=None if name is None else str(name))


def _plotted(value: Any, role: str) -> np.ndarray:
    """Return numbers or categories as an array of at least one dimension."""
    array = np.atleast_1d(plain(value, role))
    # Complex numbers would pass as categories; this says what to do with them.
    return numbers(array, role) if array.dtype.kind == "c" else array


def _named(data: Any, name: Any, role: str) -> Column:
    if data is None:
        raise BadInput(
            f"{role}={name!r} names a column, but data= is missing. Pass it."
        )
    if not is_table(data):
        raise BadInput(
            f"{role}={name!r} names a column, but data is a {type(data).__name__}. "
            "Pass a dict or a data frame."
        )
    if name not in data:
        raise BadInput(f"{role}: {describe_unknown('column', name, map(str, data))}")
    return Column(values=_plotted(data[name], role), name=str(name))
