"""How commands print: strict JSON for programs, tables that hide nothing for people."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from theseus_track.records import dumps

if TYPE_CHECKING:
    from rich.table import Table
    from rich.tree import Tree

__all__ = ["clock", "one_line", "print_json", "print_table", "print_tree", "ranges"]

# What is read by a pipe has no width: wide enough that no cell is folded.
_PIPE_WIDTH = 100_000


def print_json(value: object) -> None:
    """Print a value as strict JSON."""
    click.echo(dumps(value, indent=2))


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a head; a terminal folds long cells and never cuts them.

    Args:
        head: The titles of the columns.
        rows: The cells, printed as they are: no markup, no control characters.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in head:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    _print_lines(table)


def print_tree(tree: "Tree") -> None:
    """Print a tree of texts; a terminal folds long lines and never cuts them.

    Args:
        tree: Its labels are printed as they are, without markup; a line break in one
            starts a line of its own.
    """
    from rich.text import Text

    pending = [tree]
    while pending:
        node = pending.pop()
        lines = str(node.label).split("\n")
        node.label = Text("\n".join(map(one_line, lines)), overflow="fold")
        pending += node.children
    _print_lines(tree)


def one_line(text: str) -> str:
    """Return the text with line breaks and control characters made visible."""
    return "".join(c if c.isprintable() else _visible(c) for c in text)


def clock(seconds: float) -> str:
    """Return a time as UTC, to the second; `seconds` since the epoch."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return f"{seconds} s"
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")


def ranges(steps: Sequence[int]) -> str:
    """Return steps as few words: all of them when few, else how many and between."""
    if len(steps) <= 4:
        return " ".join(str(step) for step in steps)
    return f"{steps[0]} .. {steps[-1]} ({len(steps)})"


def _print_lines(content: "Table | Tree") -> None:
    from rich.console import Console

    console = Console(
        file=sys.stdout,
        width=None if sys.stdout.isatty() else _PIPE_WIDTH,
        highlight=False,
    )
    with console.capture() as captured:
        console.print(content)
    # Cells are padded to the width of their column; the end of a line need not be.
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def _visible(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
