"""`theseus-track runs`: which runs there are."""

import click

from theseus_track.cli.options import json_option, root_option

__all__ = ["command"]


@click.command()
@root_option
@json_option
@click.option("--project", help="Only the runs of this project.")
def command(root: str | None, as_json: bool, project: str | None) -> None:
    """List the runs, the oldest first, with their state and analyses."""
    from theseus_track.cli.output import clock, print_json, print_table, ranges
    from theseus_track.store import Store

    store = Store(root)
    runs = store.runs(project=project)
    if as_json:
        print_json([run.to_json() for run in runs])
        return
    if not runs:
        click.echo(f"No runs in {store.root}.")
        return
    print_table(
        ("PROJECT", "NAME", "ID", "STATE", "CREATED", "STEPS", "ANALYSES"),
        [
            (
                run.project,
                run.name,
                run.id,
                run.state,
                clock(run.info.created),
                ranges(run.steps),
                " ".join(run.analyses),
            )
            for run in runs
        ],
    )
