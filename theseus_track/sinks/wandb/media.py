"""Media objects of W&B, made from what the ledger holds."""

import html
import io
from typing import Any

from theseus_track.errors import BadInput
from theseus_track.records import JsonItem, dumps
from theseus_track.records.strict_json import Json
from theseus_track.sinks.json_parts import Table

__all__ = ["html_of", "image_of", "table_of"]

_LARGEST_SIDE = 65_500
_MOST_CHARACTERS = 256 * 1024
_MOST_ROWS = 1000


def image_of(png: bytes, caption: str) -> Any:  # a wandb.Image
    """Return our own pixels as an image.

    A Figure is never handed over: wandb 0.31 draws it anew through pyplot, at a
    size of its own, and fails where pyplot was not imported.

    Args:
        png: A PNG file.
        caption: Shown below it; holds the true step.

    Raises:
        BadInput: When it is no PNG file, or larger than W&B shows.
    """
    import wandb
    from PIL import Image, UnidentifiedImageError

    try:
        image = Image.open(io.BytesIO(png), formats=("PNG",))
        image.load()
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise BadInput(f"These are not the pixels of a PNG file: {error}") from error
    if max(image.size) > _LARGEST_SIDE:
        raise BadInput(f"A figure of {image.size} pixels; W&B shows {_LARGEST_SIDE}.")
    return wandb.Image(image, caption=_printable(caption))


def html_of(item: JsonItem, *, run: str) -> Any:  # a wandb.Html
    """Return a JSON value as a page that shows it verbatim.

    Args:
        item: The value.
        run: The id of its run, for the command that shows what was cut.
    """
    import wandb

    text = dumps(item.value, indent=2)
    lines = [f"<p>{html.escape(_printable(item.caption))}</p>"] if item.caption else []
    lines.append(f"<pre>{html.escape(text[:_MOST_CHARACTERS])}</pre>")
    if len(text) > _MOST_CHARACTERS:
        command = f"theseus-track show {run} {item.name} --step {item.step}"
        lines.append(f"<p>Cut. The whole value: {html.escape(_printable(command))}</p>")
    # Without a style sheet: wandb's own is fetched from its server.
    return wandb.Html("\n".join(lines), inject=False, data_is_not_path=True)


def table_of(table: Table) -> Any:  # a wandb.Table
    """Return a table whose columns have one type each.

    Args:
        table: Its columns and rows; the first thousand rows are shown.
    """
    import wandb

    names, rows = table
    columns = [_column(list(cells)) for cells in zip(*rows[:_MOST_ROWS], strict=True)]
    data = [list(row) for row in zip(*columns, strict=True)]
    return wandb.Table(columns=[*_distinct(names)], data=data)


def _column(cells: list[Json]) -> list[Any]:
    """Return the cells of a column, as texts unless all of them are numbers.

    wandb raises where a column begins with a number and goes on with a text.
    """
    kinds = {_kind(cell) for cell in cells if cell is not None}
    if kinds in ({"number"}, {"bool"}):
        return list(cells)
    return [None if cell is None else _text(cell) for cell in cells]


def _kind(cell: Json) -> str:
    if isinstance(cell, bool):
        return "bool"
    if isinstance(cell, int | float) and abs(cell) < 2**53:
        return "number"
    return "text"


def _text(cell: Json) -> str:
    return _printable(cell) if isinstance(cell, str) else dumps(cell)


def _distinct(names: list[str]) -> list[str]:
    """Return the names of columns, a repeated one with its number."""
    shown = [_printable(name) for name in names]
    return [
        name if name not in shown[:number] else f"{name} ({number})"
        for number, name in enumerate(shown)
    ]


def _printable(text: str) -> str:
    """Write out what UTF-8 cannot hold: a lone surrogate."""
    return text.encode("utf-8", "backslashreplace").decode()
