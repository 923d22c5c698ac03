"""What a tracker can draw of a JSON value: its numbers, and its rectangular part."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from theseus_track.records.strict_json import Json

__all__ = ["Table", "find_rectangle", "find_table", "numbers"]

Table: TypeAlias = tuple[list[str], list[list[Json]]]
"""The names of the columns, and the rows; every row is as long as the names."""

_MOST_NUMBERS = 20
_DEEPEST = 2
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


def numbers(value: Json) -> list[tuple[tuple[str, ...], float]]:
    """Return the numbers of a JSON value that are worth a curve.

    Args:
        value: The value; "NaN" and "Infinity" are numbers, booleans are not.

    Returns:
        (keys that lead to it, number) for at most 20, at most two dicts deep.
    """
    return list(itertools.islice(_walk(value, ()), _MOST_NUMBERS))


def _walk(
    value: Json, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], float]]:
    if isinstance(value, Mapping):
        if len(path) < _DEEPEST:
            for key, child in value.items():
                yield from _walk(child, (*path, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, _as_float(value)
    elif isinstance(value, str) and value in _NOT_FINITE:
        yield path, float(value)


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def find_table(value: Json) -> Table | None:
    """Return what can be shown as a table: the value itself, or else its first part.

    Besides rectangles this is a dict of single values, with a row for each.
    """
    return _first(value, lambda part: _rectangle(part) or _pairs(part))


def find_rectangle(value: Json) -> Table | None:
    """Return the rectangular part of a value: itself, or else its first one.

    A rectangle is a list of dicts, a list of equally long lists, or a dict of them.
    """
    return _first(value, _rectangle)


def _first(value: Json, find: Callable[[Json], Table | None]) -> Table | None:
    table = find(value)
    if table is None and isinstance(value, Mapping):
        found = map(find, value.values())
        table = next((t for t in found if t is not None), None)
    return table


def _rectangle(value: Json) -> Table | None:
    if isinstance(value, Mapping):
        return _from_columns(value)
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        return None
    if all(isinstance(row, dict) for row in value):
        rows = [row for row in value if isinstance(row, dict)]
        columns = list(dict.fromkeys(key for row in rows for key in row))
        return columns, [[row.get(key, "") for key in columns] for row in rows]
    if all(isinstance(row, list) for row in value):
        cells = [row for row in value if isinstance(row, list)]
        width = len(cells[0])
        if width and all(len(row) == width for row in cells):
            return [str(i) for i in range(width)], cells
    return None


def _from_columns(value: Mapping[str, Json]) -> Table | None:
    lists = [child for child in value.values() if isinstance(child, list)]
    if lists and len(lists) == len(value) and len({len(c) for c in lists}) == 1:
        return list(value), [list(row) for row in zip(*lists, strict=True)]
    return None


def _pairs(value: Json) -> Table | None:
    if not isinstance(value, Mapping) or not value:
        return None
    if any(isinstance(child, list | dict) for child in value.values()):
        return None
    return ["key", "value"], [[key, child] for key, child in value.items()]
