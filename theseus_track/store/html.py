"""Small pieces of HTML for notebooks; every text from data is escaped."""

import base64
from collections.abc import Mapping, Sequence
from html import escape

from theseus_track.records.strict_json import Json, dumps

__all__ = ["captioned", "image", "json_table", "rows_table"]

# A notebook cell is a look, not a store: longer tables say how much is left.
_MAX_ROWS = 50
_MAX_TEXT = 300


def captioned(caption: str, body: str) -> str:
    """Return the body with a line of text under it."""
    return (
        f"<figure>{body}<figcaption><small>{escape(caption)}</small></figcaption>"
        "</figure>"
    )


def image(png: bytes, alt: str) -> str:
    """Return an image that carries its own pixels."""
    data = base64.b64encode(png).decode("ascii")
    return f'<img src="data:image/png;base64,{data}" alt="{escape(alt)}">'


def json_table(value: Json) -> str:
    """Return a JSON value as a table: rows, fields, or one cell."""
    if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        return _records_table([v for v in value if isinstance(v, dict)])
    if isinstance(value, list) and value and all(isinstance(v, list) for v in value):
        return rows_table((), [v for v in value if isinstance(v, list)])
    if isinstance(value, dict):
        return rows_table((), [[key, item] for key, item in value.items()])
    return rows_table((), [[value]])


def rows_table(head: Sequence[str], rows: Sequence[Sequence[Json]]) -> str:
    """Return rows of JSON values as a table, the first 50 of them."""
    top = "".join(f"<th>{escape(text)}</th>" for text in head)
    lines = [
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>"
        for row in rows[:_MAX_ROWS]
    ]
    left = len(rows) - _MAX_ROWS
    if left > 0:
        lines.append(f"<tr><td>and {left} more rows</td></tr>")
    return f"<table>{f'<tr>{top}</tr>' if top else ''}{''.join(lines)}</table>"


def _records_table(records: Sequence[Mapping[str, Json]]) -> str:
    head = list(dict.fromkeys(key for record in records for key in record))
    return rows_table(head, [[record.get(key) for key in head] for record in records])


def _cell(value: Json) -> str:
    text = value if isinstance(value, str) else dumps(value)
    return escape(text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "…")
