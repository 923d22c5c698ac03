"""`theseus-track show RUN NAME`: where the files of one result are."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from theseus_track.cli.options import json_option, root_option

if TYPE_CHECKING:
    from theseus_track.store import Result

__all__ = ["command"]


@click.command()
@click.argument("run")
@click.argument("name")
@root_option
@json_option
@click.option(
    "--step", type=click.IntRange(min=0), help="Training step; else the last."
)
@click.option(
    "--copy",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Copy the files to DIR under readable names, and print those.",
)
def command(
    run: str,
    name: str,
    root: str | None,
    as_json: bool,
    step: int | None,
    directory: Path | None,
) -> None:
    """Print the paths of the files of one result.

    RUN is an id, a name (its newest run is meant) or the beginning of one; NAME
    is the NAME or key of an analysis.
    """
    from theseus_track.cli.output import clock, one_line, print_json
    from theseus_track.store import Store

    series = Store(root).run(run)[name]
    result = series.latest if step is None else series[step]
    files = result.files if directory is None else _copy(result, directory)
    if as_json:
        print_json({**result.to_json(), "files": files})
        return
    paths = " ".join(path or "(root)" for path in result.paths)
    head = (
        f"{result.run.name} (id {result.run.id})  {result.name}  step {result.step}  "
        f"{paths}  {clock(result.wall_time)}  {result.source.kind}"
    )
    click.echo(one_line(head))
    if result.error is not None:
        click.echo(f"error: {one_line(result.error)}")
    elif not files:
        click.echo("values only: nothing was drawn")
    for path in files:
        click.echo(path)


def _copy(result: "Result", directory: Path) -> list[Path]:
    from theseus_track.errors import LedgerError

    copies: list[Path] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in result.contents():
            copies.append(directory.absolute() / name)
            copies[-1].write_bytes(data)
    except OSError as error:
        if isinstance(error, LedgerError):
            raise
        raise LedgerError(
            f"The files cannot be copied to {directory}: {error.strerror}. "
            "Choose a directory that can be written."
        ) from error
    return copies
