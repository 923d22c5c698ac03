"""Rows for what is delivered afterwards: one after the other, nothing held back."""

from theseus_track.sinks.wandb.entry import Row
from theseus_track.sinks.wandb.log import Log
from theseus_track.sinks.wandb.waiting import Waiting

__all__ = ["Appender"]


class Appender(Waiting):
    """Writes each entry at once; those of one step that come together share a row.

    What is read from the ledger comes in the order of steps, so that nothing needs
    to wait for anything. Not thread-safe.
    """

    def __init__(self, log: Log, *, free: int | None) -> None:
        """Start with no row.

        Args:
            log: The run.
            free: The lowest step of W&B that has no row yet: each row is then put at
                its training step where that is free. None to leave the counter to
                W&B, in a run whose counter is not the training step.
        """
        super().__init__()
        self._log = log
        self._free = free
        self._row: Row | None = None

    def progress(self) -> bool:
        """Write everything; nothing is left."""
        while self._waiting:
            entry = self._waiting[0]
            if self._row is not None and not self._row.fits(entry):
                self.commit()
            if self._row is None:
                self._row = Row(max(self._free or 0, entry.step))
            at = None if self._free is None else self._row.at
            self._log.put(entry, self._row, at=at)
            self._row.add(entry)
            del self._waiting[0]
        return False

    def look(self) -> None:
        """Nothing to find out: rows are ended here."""

    def drain(self) -> None:
        """Write everything."""
        self.progress()

    def commit(self) -> None:
        """End the last row, so that it can be read."""
        if self._row is None:
            return
        self._log.commit()
        self._row.end()
        if self._free is not None:
            self._free = self._row.at + 1
        self._row = None
