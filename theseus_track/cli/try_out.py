"""`theseus-track try ANALYSIS RUN`: run one analysis once, and name its files."""

import click

from theseus_track.cli.options import root_option

__all__ = ["command"]


@click.command()
@click.argument("analysis")
@click.argument("run")
@click.option(
    "--step",
    type=click.IntRange(min=0),
    help="Which checkpoint of the run; default: the latest.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    default=".",
    show_default=True,
    help="Directory for the files.",
)
@root_option
def command(
    analysis: str, run: str, step: int | None, out: str, root: str | None
) -> None:
    """Run ANALYSIS on a checkpoint of RUN, and write what it draws to files.

    ANALYSIS is a registered key, module:Class or file.py:Class. The ledger stays as it
    is: this is for writing an analysis; `replay` keeps its results.
    """
    import theseus_track.demo  # noqa: F401 (registers its jobs)
    from theseus_track.analysis import AnalysisBase
    from theseus_track.cli.output import one_line
    from theseus_track.errors import BadInput
    from theseus_track.jobs import load_job
    from theseus_track.quick import preview
    from theseus_track.store import Store, resolve_root

    cls = load_job(analysis)
    if not issubclass(cls, AnalysisBase):
        raise BadInput(f"{analysis!r} is a {cls.__name__}, which is no analysis.")
    chosen = Store(resolve_root(root)).run(run)
    for path in preview(cls, chosen, step=step).save(out):
        click.echo(one_line(str(path)))
