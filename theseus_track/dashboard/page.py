"""The first page: a table of all runs, without a script."""

import html
from collections.abc import Mapping, Sequence

from theseus_track.records.strict_json import Json

__all__ = ["runs_page"]

_HEAD = ("project", "name", "state", "last step", "analyses", "metrics", "id")


def runs_page(rows: Sequence[Mapping[str, Json]], roots: Sequence[str]) -> str:
    """Return the page as HTML; every text of a run is escaped.

    Args:
        rows: The runs, as `summary` describes them, the oldest first.
        roots: The directories that were looked at.
    """
    where = ", ".join(map(html.escape, roots))
    body = _table(rows) if rows else _empty(where)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        "<title>Runs · theseus-track</title></head>"
        f"<body><main><h1>Runs</h1>{body}</main></body></html>"
    )


def _empty(where: str) -> str:
    return (
        f"<p>There are no runs in {where} yet. Make one:</p>"
        "<pre>theseus-track demo\ntheseus-track dashboard</pre>"
    )


def _table(rows: Sequence[Mapping[str, Json]]) -> str:
    head = "".join(f'<th scope="col">{title}</th>' for title in _HEAD)
    lines = "".join(_line(row) for row in reversed(rows))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _line(row: Mapping[str, Json]) -> str:
    results = f"api/runs/{row['key']}/results"
    metrics = f"api/runs/{row['key']}/metrics"
    analyses, last = row["analyses"], row["last"]
    names = ", ".join(map(str, analyses)) if isinstance(analyses, list) else ""
    numbers = last.items() if isinstance(last, dict) else ()
    values = ", ".join(f"{name} {_short(value)}" for name, value in numbers)
    step = "" if row["last_step"] is None else str(row["last_step"])
    cells = (
        html.escape(str(row["project"])),
        html.escape(str(row["name"])),
        html.escape(str(row["state"])),
        step,
        f'<a href="{results}">{html.escape(names)}</a>',
        f'<a href="{metrics}">{html.escape(values)}</a>',
        html.escape(str(row["id"])),
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _short(value: Json) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
