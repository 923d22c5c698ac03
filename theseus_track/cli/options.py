"""Options that several commands share."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from theseus_track.replay import Steps

__all__ = [
    "chosen_steps",
    "json_option",
    "recipe_option",
    "root_option",
    "sinks_option",
    "step_options",
]

F = TypeVar("F", bound=Callable[..., Any])


def root_option(command: F) -> F:
    """Add `--root`, where the ledger is."""
    return click.option(
        "--root",
        type=click.Path(file_okay=False),
        help="Directory of the ledger; else $THESEUS_ROOT, else ./results.",
    )(command)


def step_options(command: F) -> F:
    """Add `--steps` and `--step`, which `chosen_steps` reads."""
    steps = click.option(
        "--steps", metavar="A:B:C", help="From step A, before B, every C; as a slice."
    )
    step = click.option("--step", type=click.IntRange(min=0), help="This step only.")
    return steps(step(command))


def chosen_steps(
    text: str | None, step: int | None, *, latest: bool | None = None
) -> "Steps":
    """Return the steps that were asked for.

    Args:
        text: What `--steps` says, or None.
        step: What `--step` says, or None.
        latest: What `--latest` says; None where there is no such option.
    """
    from theseus_track.replay import Steps, parse_steps

    if sum((text is not None, step is not None, bool(latest))) > 1:
        options = (
            "--steps and --step" if latest is None else "--steps, --step, --latest"
        )
        raise click.UsageError(f"Give only one of {options}.")
    if step is not None:
        return parse_steps(str(step))
    return parse_steps(text) if text is not None else Steps(latest=bool(latest))


def json_option(command: F) -> F:
    """Add `--json`, for programs."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print strict JSON for programs."
    )(command)


def recipe_option(command: F) -> F:
    """Add `--recipe`, what makes checkpoints runnable that no job of ours has saved."""
    return click.option(
        "--recipe",
        metavar="FILE[:OBJECT]",
        help="What makes the checkpoints runnable, for a run without a job of ours.",
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
