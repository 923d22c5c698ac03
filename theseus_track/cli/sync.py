"""`theseus-track sync RUN`: deliver to trackers what they do not show yet."""

import click

from theseus_track.cli.options import json_option, root_option, sinks_option

__all__ = ["command"]


@click.command()
@click.argument("run")
@root_option
@sinks_option("", none="default: all that it was shown in")
@click.option(
    "--again",
    is_flag=True,
    help="Also what was delivered before, for a tracker that has lost it.",
)
@click.option(
    "--assume-stopped",
    is_flag=True,
    help="Take the run for stopped although it looks as if it were running.",
)
@json_option
def command(
    run: str,
    root: str | None,
    sinks: tuple[str, ...],
    again: bool,
    assume_stopped: bool,
    as_json: bool,
) -> None:
    """Deliver what the trackers of RUN do not show yet, from the ledger alone.

    In step order, and each thing once: running it twice changes nothing. A tracker
    that the run never had can be named, too. Exits with 3 when something is missing
    still; running it again tries that again.
    """
    from theseus_track.cli.output import one_line, print_json
    from theseus_track.cli.progress import Bar
    from theseus_track.sinks import sync

    with Bar("record") as bar:
        report = sync(
            run,
            to=sinks,
            root=root,
            again=again,
            assume_stopped=assume_stopped,
            tell=bar,
        )
    if as_json:
        print_json(report)
    else:
        for line in str(report).splitlines():
            click.echo(one_line(line))
    raise SystemExit(0 if report.complete else 3)
