"""Rows of a run that is ours: in the order of steps, so that W&B's counter is true."""

import time
from collections.abc import Callable

from theseus_track.sinks.wandb.entry import Entry, Row
from theseus_track.sinks.wandb.log import Log

__all__ = ["Owner", "Undrawn"]

Undrawn = Callable[[], int | None]
"""Gives the lowest step of which a figure is being drawn still, or None."""

# From a figure's drawing to its arrival here, in seconds: the rows of higher steps
# are held so long after they arrived, also when nothing is being drawn.
_SETTLED = 1.0


class Owner:
    """Holds each row until the figures of lower steps are there, up to a limit.

    A row that comes when a higher step was written is late: it joins a row that
    has nothing of its kind, or gets one between two steps or at the end, and its
    step key is true there too. Not thread-safe.
    """

    def __init__(
        self,
        log: Log,
        *,
        starting_step: int = 0,
        patience: float,
        undrawn: Undrawn | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with nothing to write.

        Args:
            log: The run.
            starting_step: The lowest step that W&B takes; above 0 when resumed.
            patience: The longest that a row is held, in seconds.
            undrawn: What is being drawn; None when nobody knows.
            clock: The time, in seconds.
        """
        self._log = log
        self._floor = starting_step
        self._patience = patience
        self._undrawn = undrawn
        self._clock = clock
        self._row: Row | None = None
        self._held: dict[int, list[Entry]] = {}
        # Step -> when the first and the last of its entries came.
        self._arrivals: dict[int, tuple[float, float]] = {}
        self._late: list[Entry] = []

    def add(self, entry: Entry) -> None:
        """Take an entry; `progress` writes it when its turn comes."""
        if entry.step < self._lowest():
            self._late.append(entry)
            return
        now = self._clock()
        first, _ = self._arrivals.get(entry.step, (now, now))
        self._arrivals[entry.step] = (first, now)
        self._held.setdefault(entry.step, []).append(entry)

    def remove(self, entry: Entry) -> None:
        """Forget an entry that was not written."""
        if entry in self._late:
            self._late.remove(entry)
        else:
            self._held[entry.step].remove(entry)

    def holds(self, entry: Entry) -> bool:
        """Tell whether an entry was not written yet."""
        return entry in self._late or entry in self._held.get(entry.step, ())

    def progress(self) -> bool:
        """Write the rows whose time has come; tell whether anything is left."""
        for step in sorted(self._held):
            if not self._ready(step):
                break
            self._release(step)
        if self._row is not None:
            self._join(self._late, self._row)
        # Late entries wait for the next row: there is nothing to be done meanwhile.
        return bool(self._held)

    def look(self) -> None:
        """Nothing to find out: rows are ended here."""

    def drain(self) -> None:
        """Write everything; what is late comes after the last step."""
        for step in sorted(self._held):
            self._release(step)
        while self._late:
            self._join(self._late, self._begin(self._lowest_free()))

    def commit(self) -> None:
        """End the last row, so that it can be read."""
        if self._row is not None:
            self._log.commit()
            self._row.end()
            self._floor = self._row.at + 1
            self._row = None

    def _lowest(self) -> int:
        """Return the lowest step whose row can be written still."""
        return self._floor if self._row is None else self._row.at

    def _lowest_free(self) -> int:
        """Return the lowest step of which there is no row yet."""
        return self._floor if self._row is None else self._row.at + 1

    def _ready(self, step: int) -> bool:
        now = self._clock()
        first, last = self._arrivals[step]
        if now - first >= self._patience:
            return True
        if self._undrawn is None or now - last < _SETTLED:
            return False
        lowest = self._undrawn()
        return lowest is None or lowest > step

    def _release(self, step: int) -> None:
        """Write the row of a step, and what is late where there is room."""
        while self._late and self._lowest_free() < step:
            self._join(self._late, self._begin(self._lowest_free()))
        row = self._row
        if row is None or row.at != step:
            row = self._begin(step)
        self._join(self._held[step], row)
        # A second value of one key and step needs a row of its own.
        self._late += self._held.pop(step)
        del self._arrivals[step]
        self._join(self._late, row)

    def _begin(self, step: int) -> Row:
        if self._row is not None:
            self._row.end()
        self._row = Row(step)
        return self._row

    def _join(self, entries: list[Entry], row: Row) -> None:
        """Write those entries that fit into a row, and take them from the list."""
        for entry in list(entries):
            if row.fits(entry):
                self._log.put(entry, row, at=row.at)
                row.add(entry)
                entries.remove(entry)
