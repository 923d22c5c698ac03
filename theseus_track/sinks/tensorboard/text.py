"""A JSON value as the Markdown that TensorBoard shows, verbatim."""

import re
from collections.abc import Sequence

from theseus_track.records import JsonItem, dumps
from theseus_track.records.strict_json import Json
from theseus_track.sinks.json_parts import find_table

__all__ = ["show_json"]

_MOST_ROWS = 100
_MOST_COLUMNS = 20
_MOST_CHARACTERS = 64 * 1024
_CELL = 200
_MARKUP = re.compile(r"[^A-Za-z0-9 ]")


def show_json(item: JsonItem, *, run: str) -> str:
    """Write a JSON value as Markdown: its caption, a table, and the whole as code.

    Args:
        item: The value.
        run: The id of its run, for the command that shows what was cut.
    """
    blocks = [_literal(item.caption)] if item.caption else []
    table = find_table(item.value)
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
