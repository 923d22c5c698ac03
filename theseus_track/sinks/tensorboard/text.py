"""A JSON value as the Markdown that TensorBoard shows, verbatim."""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from theseus_track.records import JsonItem, dumps
from theseus_track.records.strict_json import Json

__all__ = ["numbers", "show_json"]

_MOST_ROWS = 100
_MOST_COLUMNS = 20
_MOST_CHARACTERS = 64 * 1024
_MOST_NUMBERS = 20
_DEEPEST = 2
_CELL = 200
_MARKUP = re.compile(r"[^A-Za-z0-9 ]")
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_Table = tuple[list[str], list[list[Json]]]


def show_json(item: JsonItem, *, run: str) -> str:
    """Write a JSON value as Markdown: its caption, a table, and the whole as code.

    Args:
        item: The value.
        run: The id of its run, for the command that shows what was cut.
    """
    blocks = [_literal(item.caption)] if item.caption else []
    table = _find_table(item.value)
    if table is not None:
        blocks.append(_markdown_table(*table))
    text = dumps(item.value, indent=2)
    # No line of it can end the fence: strings keep line breaks as \n.
    blocks.append(f"```json\n{text[:_MOST_CHARACTERS]}\n```")
    if len(text) > _MOST_CHARACTERS:
        command = f"theseus-track show {run} {item.name} --step {item.step}"
        blocks.append(
            f"Cut after {_MOST_CHARACTERS} of {len(text)} characters. "
            f"The whole value: {_literal(command)}"
        )
    return "\n\n".join(blocks)


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


def _find_table(value: Json) -> _Table | None:
    """Return the rectangular part of a value: itself, or else its first one."""
    table = _as_table(value)
    if table is None and isinstance(value, Mapping):
        found = (_as_table(child) for child in value.values())
        table = next((t for t in found if t is not None), None)
    return table


def _as_table(value: Json) -> _Table | None:
    if isinstance(value, Mapping) and value:
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


def _from_columns(value: Mapping[str, Json]) -> _Table | None:
    lists = [child for child in value.values() if isinstance(child, list)]
    if len(lists) == len(value) and len({len(column) for column in lists}) == 1:
        return list(value), [list(row) for row in zip(*lists, strict=True)]
    if all(not isinstance(child, list | dict) for child in value.values()):
        return ["key", "value"], [[key, child] for key, child in value.items()]
    return None


def _markdown_table(columns: list[str], rows: list[list[Json]]) -> str:
    shown = columns[:_MOST_COLUMNS]
    lines = [
        _row(shown),
        "|" + "---|" * len(shown),
        *(_row(row[:_MOST_COLUMNS]) for row in rows[:_MOST_ROWS]),
    ]
    if len(rows) > _MOST_ROWS or len(columns) > _MOST_COLUMNS:
        lines += [
            "",
            f"{min(len(rows), _MOST_ROWS)} of {len(rows)} rows, "
            f"{len(shown)} of {len(columns)} columns.",
        ]
    return "\n".join(lines)


def _row(cells: Sequence[Json]) -> str:
    texts = (cell if isinstance(cell, str) else dumps(cell) for cell in cells)
    return "| " + " | ".join(_literal(_shorten(text)) for text in texts) + " |"


def _shorten(text: str) -> str:
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def _literal(text: str) -> str:
    """Write text so that Markdown shows every character of it.

    Numeric references are the one escape that holds for emphasis, pipes, line
    breaks and HTML alike; what no HTML can hold is shown as its code point.
    """
    return _MARKUP.sub(_reference, text)


def _reference(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000:
        return f"&#92;u{code:04x}"
    return f"&#{code};"
