"""`theseus-track results RUN`: which results a run has."""

import click

from theseus_track.cli.options import json_option, root_option

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
@click.option("--all", "superseded", is_flag=True, help="Also what was superseded.")
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
    print_table(
        ("STEP", "NAME", "PATHS", "SHAPES", "SOURCE", "LOGGED", "RESULT"),
        [
            (
                str(result.step),
                result.name,
                " ".join(path or "(root)" for path in result.paths),
                " ".join(_shape(shape) for shape in result.shapes.values()),
                result.source.kind + (" (superseded)" if result.superseded else ""),
                clock(result.wall_time),
                _outcome(result.error, [path.suffix[1:] for path in result.files]),
            )
            for result in results
        ],
    )


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(str(axis) for axis in shape) or "scalar"


def _outcome(error: str | None, suffixes: list[str]) -> str:
    if error is not None:
        return f"error: {error}"
    return " ".join(suffixes) or "values only"
