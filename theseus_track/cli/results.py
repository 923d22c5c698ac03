"""`theseus-track results RUN`: which results a run has."""

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from theseus_track.cli.options import json_option, root_option

if TYPE_CHECKING:
    from theseus_track.store import Run

__all__ = ["command"]


@click.command()
@click.argument("run")
@root_option
@json_option
@click.option(
    "-a",
    "--analysis",
    "analyses",
    multiple=True,
    metavar="NAME",
    help="Only this analysis, by NAME or key; may be repeated.",
)
@click.option("--step", type=click.IntRange(min=0), help="Only this training step.")
@click.option(
    "--superseded", "--all", is_flag=True, help="Also what a newer one replaced."
)
def command(
    run: str,
    root: str | None,
    as_json: bool,
    analyses: tuple[str, ...],
    step: int | None,
    superseded: bool,
) -> None:
    """List the results of RUN, by step.

    RUN is an id, a name (its newest run is meant) or the beginning of one.
    """
    from theseus_track.cli.output import clock, one_line, print_json, print_table
    from theseus_track.store import Store

    found = Store(root).run(run)
    names = [found[analysis].name for analysis in analyses]
    results = [
        result
        for result in found.results(step=step, superseded=superseded)
        if not names or result.name in names
    ]
    if as_json:
        print_json([result.to_json() for result in results])
        return
    head = f"Run {found.name} (id {found.id}), {found.state}, in {found.dir}"
    click.echo(one_line(head))
    if not results:
        click.echo(_nothing(found, analyses, step))
        return
    print_table(
        ("STEP", "NAME", "PATHS", "SHAPES", "SOURCE", "LOGGED", "RESULT"),
        [
            (
                str(result.step),
                result.name,
                " ".join(path or "(root)" for path in result.paths),
                _shapes(result.shapes.values()),
                result.source.kind + (" (superseded)" if result.superseded else ""),
                clock(result.wall_time),
                _outcome(result.error, [path.suffix[1:] for path in result.files]),
            )
            for result in results
        ],
    )


def _nothing(run: "Run", analyses: tuple[str, ...], step: int | None) -> str:
    """Say that nothing was found, and where there is something."""
    from theseus_track.cli.output import one_line, ranges

    of = f" of {', '.join(analyses)}" if analyses else ""
    at = "" if step is None else f" at step {step}"
    steps = f" Steps: {ranges(run.steps)}." if run.steps else ""
    return one_line(f"No results{of}{at}.{steps}")


def _shapes(shapes: Iterable[tuple[int, ...]]) -> str:
    """Return shapes in order, with a count where one is repeated."""
    groups = itertools.groupby(map(_shape, shapes))
    counted = ((shape, len(list(group))) for shape, group in groups)
    return " ".join(f"{n} * {shape}" if n > 1 else shape for shape, n in counted)


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(str(axis) for axis in shape) or "scalar"


def _outcome(error: str | None, suffixes: list[str]) -> str:
    if error is not None:
        return f"error: {error}"
    return " ".join(suffixes) or "values only"
