"""`theseus-track tensorboard [RUN]`: show runs in TensorBoard, completely."""

from typing import TYPE_CHECKING

import click

from theseus_track.cli.options import root_option

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from theseus_track.store import Run

__all__ = ["command"]


@click.command()
@click.argument("run", required=False)
@root_option
@click.option(
    "--print", "only_print", is_flag=True, help="Print the command, and run nothing."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Where to listen; else 6006."
)
@click.option("--host", help="On which address to listen; else this machine's own.")
def command(
    run: str | None,
    root: str | None,
    only_print: bool,
    port: int | None,
    host: str | None,
) -> None:
    """Start TensorBoard where RUN, or all of the root, is shown.

    With the flags without which it shows ten figures of each kind, chosen at random.
    """
    import shlex
    import subprocess
    import sys

    from theseus_track.sinks.tensorboard.viewing import viewing_words

    words = viewing_words(_logdir(run, root))
    words += [] if port is None else ["--port", str(port)]
    words += [] if host is None else ["--host", host]
    click.echo(shlex.join(words))
    if only_print:
        return
    # The one that is installed beside this package, whatever the path finds first.
    program = [sys.executable, "-m", "tensorboard.main", *words[1:]]
    try:
        raise SystemExit(subprocess.call(program))
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _logdir(name: str | None, root: str | None) -> "Path":
    """Find the log directory of a run, or the only one of the root."""
    from pathlib import Path

    from theseus_track.errors import BadInput, NotFound
    from theseus_track.store import Store

    store = Store(root)
    runs = store.runs() if name is None else [store.run(name)]
    named = {path: run.name for run in runs for path in _places(run, store.root)}
    found = [path for path in named if Path(path).is_dir()]
    if not found:
        whose = "the root" if name is None else f"the run {name!r}"
        raise NotFound(
            f"There is nothing of {whose} in TensorBoard. Show it there with "
            "theseus-track sync RUN --to tensorboard."
        )
    if len(found) > 1 and name is None:
        shown = "; ".join(f"{path} ({named[path]})" for path in found[:10])
        raise BadInput(f"The runs are in several places: {shown}. Name a run.")
    return Path(found[0])


def _places(run: "Run", root: "Path") -> "Iterator[str]":
    """Yield the log directories that a run is shown in, its own first."""
    from theseus_track.records import Delivered

    settings = run.info.sinks.get("tensorboard")
    logdir = settings.get("logdir") if isinstance(settings, dict) else None
    own = logdir if isinstance(logdir, str) else str(root / "tensorboard")
    if settings is not None:
        yield own
    for _, record in run.records():
        if isinstance(record, Delivered):
            sink, _, target = record.sink.partition(":")
            if sink == "tensorboard":
                yield target or own
