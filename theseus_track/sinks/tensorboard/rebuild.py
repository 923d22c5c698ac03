"""Makes the event file of a directory anew: sorted, complete, in one moment."""

import contextlib
import itertools
import json
import operator
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from theseus_track.records import Item, dumps
from theseus_track.sinks.tensorboard.events import (
    EventFile,
    Value,
    event_files,
    next_name,
)

__all__ = ["OURS", "finish_rebuild", "rebuild"]

OURS = ".theseus"
"""The end of the names of our event files; no other is ever deleted."""

_PLAN = ".rebuild"

Drawn: TypeAlias = tuple[Item, Sequence[Value]]


def rebuild(directory: Path, later: Sequence[Path], drawn: Iterable[Drawn]) -> None:
    """Replace the event files of some directories by a single one, in the first.

    Only for when nobody writes there. A reader sees the old files or the new one, but
    for a crash between replacing and deleting, after which the old ones are deleted by
    `finish_rebuild`.

    Args:
        directory: Where the file goes.
        later: The directories beside it that took the steps that came late.
        drawn: Items and what they become, by step. Of several values of one tag and
            step the last is taken.

    Raises:
        OSError: When the disk does not take it; nothing has changed then.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for unfinished in directory.glob(f"{_PLAN}-*"):
        unfinished.unlink(missing_ok=True)
    old = [path for place in (directory, *later) for path in _ours(place)]
    # No reader takes it for an event file before it has its name.
    file = EventFile(directory, f"{_PLAN}-{secrets.token_hex(4)}")
    try:
        for item, values in _sorted(drawn):
            file.write(step=item.step, wall_time=item.wall_time, values=values)
        file.sync()
        file.close()
        name = next_name(directory)
        _write_plan(directory, name, old)
        file.path.replace(directory / name)
    except BaseException:
        file.close()
        file.path.unlink(missing_ok=True)
        raise
    finish_rebuild(directory)


def finish_rebuild(directory: Path) -> None:
    """Delete what a rebuild has replaced, also one that was cut short."""
    plan = directory / _PLAN
    try:
        told = json.loads(plan.read_bytes())
    except FileNotFoundError:
        return
    if (directory / told["made"]).exists():
        for name in told["replaced"]:
            path = directory / name
            path.unlink(missing_ok=True)
            if path.parent != directory:
                # Not empty: something of somebody else's is in there.
                with contextlib.suppress(OSError):
                    path.parent.rmdir()
    plan.unlink(missing_ok=True)


def _ours(directory: Path) -> list[Path]:
    return [path for path in event_files(directory) if path.name.endswith(OURS)]


def _write_plan(directory: Path, made: str, replaced: Sequence[Path]) -> None:
    names = [os.path.relpath(path, directory) for path in replaced]
    partial = directory / f"{_PLAN}-{secrets.token_hex(4)}"
    partial.write_text(dumps({"made": made, "replaced": names}), encoding="ascii")
    partial.replace(directory / _PLAN)


def _sorted(drawn: Iterable[Drawn]) -> Iterator[Drawn]:
    """Yield what is shown, with each tag once at a step."""
    by_step = itertools.groupby(drawn, key=lambda pair: pair[0].step)
    for pairs in map(operator.itemgetter(1), by_step):
        of_step = list(pairs)
        owner = {
            value.tag: index
            for index, (_, values) in enumerate(of_step)
            for value in values
        }
        for index, (item, values) in enumerate(of_step):
            kept = [value for value in values if owner[value.tag] == index]
            if kept:
                yield item, kept
