"""`theseus-track replot RUN`: draw results again from their stored values."""

import click

from theseus_track.cli.options import (
    chosen_steps,
    root_option,
    sinks_option,
    step_options,
)

__all__ = ["command"]


@click.command()
@click.argument("run")
@click.option(
    "-a",
    "--analysis",
    "analyses",
    multiple=True,
    required=True,
    metavar="KEY_OR_FILE:CLASS",
    help="Whose plot: a registered key, module:Class or file.py:Class; repeatable.",
)
@root_option
@step_options
@click.option(
    "--again",
    is_flag=True,
    help="Also what the same plot drew, because something that it calls changed.",
)
@sinks_option("", none="default: none, sync delivers it later")
@click.option("--strict", is_flag=True, help="Stop at the first fault.")
def command(
    run: str,
    analyses: tuple[str, ...],
    root: str | None,
    steps: str | None,
    step: int | None,
    again: bool,
    sinks: tuple[str, ...],
    strict: bool,
) -> None:
    """Draw results of RUN again, because plot changed.

    From the values in the ledger: no model, checkpoint or compilation is needed. The
    older drawings stay, as superseded. Exits with 3 when some could not be drawn, or
    when the values themselves need a replay.
    """
    import theseus_track.demo  # noqa: F401 (registers its jobs)
    from theseus_track.cli.output import one_line
    from theseus_track.cli.progress import Bar
    from theseus_track.replay import replot
    from theseus_track.sinks import sync

    with Bar("figure") as bar:
        outcome = replot(
            run,
            analyses,
            steps=chosen_steps(steps, step),
            root=root,
            again=again,
            strict=strict,
            tell=bar,
        )
    lines, code = str(outcome).splitlines(), outcome.exit_code
    if sinks:
        report = sync(outcome.run, to=sinks, root=root)
        lines += str(report).splitlines()
        code = code if report.complete else 3
    for line in lines:
        click.echo(one_line(line))
    raise SystemExit(code)
