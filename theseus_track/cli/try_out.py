"""`theseus-track try ANALYSIS RUN`: run one analysis once, and name its files."""

import click

from theseus_track.cli.options import recipe_option, root_option

__all__ = ["command"]


@click.command()
@click.argument("analysis")
@click.argument("run", metavar="RUN_OR_DIR")
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
@recipe_option
@root_option
def command(
    analysis: str,
    run: str,
    step: int | None,
    out: str,
    recipe: str | None,
    root: str | None,
) -> None:
    """Run ANALYSIS on a checkpoint of a run, and write what it draws to files.

    ANALYSIS is a registered key, module:Class or file.py:Class. The ledger stays as it
    is: this is for writing an analysis; `replay` keeps its results.
    """
    import theseus_track.demo  # noqa: F401 (registers its jobs)
    from theseus_track.analysis import AnalysisBase
    from theseus_track.cli.output import one_line
    from theseus_track.errors import BadInput
    from theseus_track.jobs import load_job
    from theseus_track.quick import preview
    from theseus_track.replay import find_target

    cls = load_job(analysis)
    if not issubclass(cls, AnalysisBase):
        raise BadInput(f"{analysis!r} is a {cls.__name__}, which is no analysis.")
    target = find_target(run, [cls], root=root, recipe=recipe)
    (bound,) = target.analyses
    shown = preview(bound, target.recipe, checkpoints=target.directory, step=step)
    if shown.undrawn:
        click.echo(one_line(shown.undrawn), err=True)
    for path in shown.save(out):
        click.echo(one_line(str(path)))
