"""Rows of a run that the user logs to: ours join theirs and never end one early."""

from theseus_track.sinks.wandb.entry import Row
from theseus_track.sinks.wandb.log import Log
from theseus_track.sinks.wandb.waiting import Waiting

__all__ = ["Rider"]


class Rider(Waiting):
    """Puts at most one step of ours into each row of the user's.

    What does not fit waits until the user has ended the row; only `drain`, when
    the user logs no more, ends rows itself. Not thread-safe.
    """

    def __init__(self, log: Log, *, own_rows: bool = False) -> None:
        """Start with nothing to write.

        Args:
            log: The user's run.
            own_rows: Whether each log makes a row by itself, as in W&B's shared
                mode; then nothing has to wait.
        """
        super().__init__()
        self._log = log
        self._own_rows = own_rows
        self._row: Row | None = None

    def progress(self) -> bool:
        """Write what fits into the user's row; tell whether anything waits still."""
        self._fill()
        while self._waiting and self._row_has_ended():
            if self._row is not None:
                self._row.end()
            self._row = None
            self._fill()
        return bool(self._waiting)

    def look(self) -> None:
        """Find out whether the user has ended the row that holds our last values."""
        if self._row is not None and self._row_has_ended():
            self._row.end()

    def drain(self) -> None:
        """Write everything, ending rows between; the last one is left to the user."""
        while self.progress():
            self._log.commit()
            if self._row is not None:
                self._row.end()
            self._row = None

    def commit(self) -> None:
        """Leave the row to the user, who ends it."""

    def _fill(self) -> None:
        for entry in list(self._waiting):
            if self._row is not None and not self._row.fits(entry):
                continue
            self._log.put(entry, self._row)
            self._waiting.remove(entry)
            # Asked after the write: if the user ends the row meanwhile, this waits
            # for one row more than it must, and nothing is overwritten.
            at = 0 if self._own_rows else self._log.counter
            if self._row is None or self._row.at != at:
                if self._row is not None:
                    self._row.end()
                self._row = Row(at)
            self._row.add(entry)

    def _row_has_ended(self) -> bool:
        if self._row is None or self._own_rows:
            return True
        return self._log.counter > self._row.at
