"""The only judge of whether a run is finished, running or stopped."""

import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from theseus_track.records import End, Record, WriterRecord
from theseus_track.store.machine import is_dead, this_machine

if TYPE_CHECKING:
    from theseus_track.store.run import Run

__all__ = [
    "DELIVERS",
    "FINISHED",
    "RUNNING",
    "STOPPED",
    "WINDOW_SECONDS",
    "Watched",
    "state",
    "state_of",
]

FINISHED = "finished"
RUNNING = "running"
STOPPED = "stopped"

DELIVERS = "sync"
"""The purpose of a writer that only marks what it delivered."""

WINDOW_SECONDS = 300.0
"""A writer whose file has not grown for this long counts as stopped."""


def state(run: "Run") -> str:
    """Return whether a run is "finished", "running" or "stopped".

    *finished*: every writer did its work and wrote its last line, or a later one of
    the same purpose took over from it. *running*: a file of a writer grew within 5
    minutes, and its process is not known to be dead. *stopped*: anything else.

    Growth that this process watched counts first, since it needs no clock. Only
    for a first look the file's own time is compared with this machine's; one in
    the future counts as now. Nothing is written to find out. A delivery to trackers
    adds nothing to a run, so that its writers do not count.

    Args:
        run: The run, as it was when last refreshed.
    """
    return state_of([pair for pair in run.writers() if pair[1].purpose != DELIVERS])


class Watched(Protocol):
    """A journal that somebody follows: what the state of a run is judged by."""

    @property
    def path(self) -> Path:
        """The journal."""

    @property
    def first_seen(self) -> float:
        """When it was first looked at, on the monotonic clock."""

    @property
    def grew(self) -> float | None:
        """When it was seen to grow, on that clock, or None."""

    @property
    def last(self) -> Record | None:
        """Its last record, or None."""


def state_of(writers: Sequence[tuple[Watched, WriterRecord]]) -> str:
    """Judge by the journals of a run and their first lines, earliest first."""
    open_ = [
        (reader, writer)
        for i, (reader, writer) in enumerate(writers)
        if not _ended(reader) and not _taken_over(writer, writers[i + 1 :], reader)
    ]
    if open_:
        return RUNNING if any(_alive(*pair) for pair in open_) else STOPPED
    cut_short = any(
        not _completed(reader) and not _has_successor(writer, writers[i + 1 :])
        for i, (reader, writer) in enumerate(writers)
    )
    return FINISHED if writers and not cut_short else STOPPED


def _ended(reader: Watched) -> bool:
    return isinstance(reader.last, End)


def _completed(reader: Watched) -> bool:
    # One without a last line was taken over, or it would be running or stopped.
    return not isinstance(reader.last, End) or reader.last.complete


def _taken_over(
    writer: WriterRecord,
    later: Sequence[tuple[Watched, WriterRecord]],
    reader: Watched,
) -> bool:
    return _has_successor(writer, later) and not _alive(reader, writer)


def _has_successor(
    writer: WriterRecord, later: Sequence[tuple[Watched, WriterRecord]]
) -> bool:
    return any(other.purpose == writer.purpose for _, other in later)


def _alive(reader: Watched, writer: WriterRecord) -> bool:
    return not _known_dead(writer) and _grew(reader)


def _known_dead(writer: WriterRecord) -> bool:
    if writer.machine:
        return writer.machine == this_machine() and is_dead(writer.pid)
    return writer.host == socket.gethostname() and is_dead(writer.pid)


def _grew(reader: Watched) -> bool:
    now = time.monotonic()
    if reader.grew is not None and now - reader.grew < WINDOW_SECONDS:
        return True
    if now - reader.first_seen >= WINDOW_SECONDS:
        return False
    try:
        modified = reader.path.stat().st_mtime
    except OSError:
        return False
    return time.time() - modified < WINDOW_SECONDS
