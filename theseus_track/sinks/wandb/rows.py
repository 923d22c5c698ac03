"""The three ways to write rows, and when a row is safe."""

from typing import Any, Protocol

from theseus_track.sinks.wandb.appending import Appender
from theseus_track.sinks.wandb.choice import Chosen
from theseus_track.sinks.wandb.entry import Entry
from theseus_track.sinks.wandb.log import Log
from theseus_track.sinks.wandb.owning import Owner, Undrawn
from theseus_track.sinks.wandb.riding import Rider

__all__ = ["Rows", "kept_after", "rows_of"]

# Seconds after which a row is on its server as a rule: wandb 0.31 sends every 15 s.
_SENT_AFTER = 60.0
# Seconds that a row may take on its way to W&B's process and to its file.
_WRITTEN_AFTER = 0.5
# What wandb 0.31 takes where nothing is set, in seconds.
_WRITTEN_EVERY = 15.0


class Rows(Protocol):
    """How rows are written: by a Rider, an Owner or an Appender."""

    def add(self, entry: Entry, /) -> None:
        """Take an entry; `progress` writes it when its turn comes."""

    def remove(self, entry: Entry, /) -> None:
        """Forget an entry that was not written."""

    def holds(self, entry: Entry, /) -> bool:
        """Tell whether an entry was not written yet."""

    def look(self) -> None:
        """Find out which of the rows that hold our values are over."""

    def progress(self) -> bool:
        """Write what can be written; tell whether it is worth to look again."""

    def drain(self) -> None:
        """Write everything, ending rows where that is needed."""

    def commit(self) -> None:
        """End the last row, if it is ours."""


def rows_of(
    chosen: Chosen, log: Log, *, patience: float, undrawn: Undrawn | None
) -> Rows:
    """Return what writes the rows of a run.

    Args:
        chosen: The run.
        log: What adds to it.
        patience: The longest that a row of ours waits for figures, in seconds.
        undrawn: Gives the lowest step of which a figure is still to come.
    """
    match chosen.rows:
        case "ride":
            return Rider(log, own_rows=chosen.run.settings.mode == "shared")
        case "append":
            free = int(chosen.run.starting_step) if chosen.counts else None
            return Appender(log, free=free)
        case "wait":
            start = int(chosen.run.starting_step)
            return Owner(log, starting_step=start, patience=patience, undrawn=undrawn)


def kept_after(settings: Any) -> float:
    """Return how long after its end a row is safe from a kill of this process.

    W&B's process dies with ours. Offline, what it had not written to its file is
    lost; online, what is not on the server is in that file and never sent.

    Args:
        settings: Those of a `wandb.Run`.

    Returns:
        Seconds.
    """
    if settings.mode != "offline":
        return _SENT_AFTER
    every = settings.x_transaction_log_flush_interval or _WRITTEN_EVERY
    return float(every) + _WRITTEN_AFTER
