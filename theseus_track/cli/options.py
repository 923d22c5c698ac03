"""Options that several commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["json_option", "root_option", "sinks_option"]

F = TypeVar("F", bound=Callable[..., Any])


def root_option(command: F) -> F:
    """Add `--root`, where the ledger is."""
    return click.option(
        "--root",
        type=click.Path(file_okay=False),
        help="Directory of the ledger; else $THESEUS_ROOT, else ./results.",
    )(command)


def json_option(command: F) -> F:
    """Add `--json`, for programs."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print strict JSON for programs."
    )(command)


def sinks_option(default: str, *, none: str = "'' for none") -> Callable[[F], F]:
    """Add `--to`, the trackers that show the results.

    Args:
        default: What it is when it is not given, as on the line.
        none: What the help says about giving nothing.
    """
    return click.option(
        "--to",
        "sinks",
        default=default,
        show_default=bool(default),
        metavar="SINKS",
        callback=lambda _ctx, _option, text: tuple(filter(None, text.split(","))),
        help=f"Trackers, separated by commas, such as tensorboard:logs; {none}.",
    )
