"""One W&B run that is being written: items in, rows out, and its end in time."""

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any, Protocol

from theseus_track.errors import DeliveryError
from theseus_track.records import FigureItem, Item, JsonItem, MetricsItem
from theseus_track.sinks.wandb.content import (
    figure_entry,
    json_entry,
    metrics_entry,
    table_entry,
)
from theseus_track.sinks.wandb.entry import Entry
from theseus_track.sinks.wandb.log import Log
from theseus_track.sinks.wandb.owning import Owner, Undrawn
from theseus_track.sinks.wandb.pump import Pump
from theseus_track.sinks.wandb.riding import Rider
from theseus_track.sinks.wandb.versions import TableVersions

__all__ = ["Place", "RunIsOver"]

# Seconds that a flush waits for the user to end a row. It is called on the thread
# that logs as a rule, and then nobody will.
_FOR_THE_USER = 1.0


class RunIsOver(DeliveryError):
    """The W&B run was finished; it takes nothing more."""

    def __init__(self) -> None:
        """Say it in the words of every receipt."""
        super().__init__("the W&B run was finished; the result is in the ledger")


class _Rows(Protocol):
    """How rows are written: by a Rider or by an Owner."""

    def add(self, entry: Entry, /) -> None: ...
    def remove(self, entry: Entry, /) -> None: ...
    def holds(self, entry: Entry, /) -> bool: ...
    def progress(self) -> bool: ...
    def drain(self) -> None: ...
    def commit(self) -> None: ...


class Place:
    """Writes to one run until it is over; thread-safe.

    Its callers are the owner thread, the pump's thread, and the user's thread when
    it finishes the run.
    """

    def __init__(
        self,
        run: Any,  # a wandb.Run
        *,
        owned: bool,
        run_id: str,
        patience: float,
        undrawn: Undrawn | None,
    ) -> None:
        """Take a run that is not finished.

        Args:
            run: The W&B run.
            owned: Whether it is ours: nobody else logs to it, and we finish it.
            run_id: The id of the run in the ledger.
            patience: The longest that a row of ours waits for figures, in seconds.
            undrawn: Gives the lowest step of which a figure is still to come.
        """
        self._run = run
        self._owned = owned
        self._run_id = run_id
        self._lock = threading.RLock()
        self._log = Log(run)
        self._rows = _rows(run, self._log, owned, patience, undrawn)
        self._tables = TableVersions()
        self._pump = Pump(self._progress)
        self._held: dict[int, Entry] = {}
        self._ending = owned
        self._over = False
        self._told = False

    def write(self, item: Item) -> bool:
        """Write an item, or keep it until a row can take it.

        Returns:
            Whether it is written.

        Raises:
            BadInput: When W&B cannot show it.
            RunIsOver: When the run was finished.
            Exception: Whatever wandb raises when its process cannot be reached;
                nothing of the item is kept then.
        """
        with self._writing():
            entries = self._entries(item)
            for entry in entries:
                self._rows.add(entry)
            try:
                waits = self._rows.progress()
            # Whatever it is: the item is tried again, so that it must not wait too.
            except Exception:
                for entry in filter(self._rows.holds, entries):
                    self._rows.remove(entry)
                raise
            held = [entry for entry in entries if self._rows.holds(entry)]
            if held:
                self._held[id(item)] = held[-1]
        if waits:
            self._pump.wake()
        return not held

    def holds(self, item: Item) -> bool:
        """Tell whether an item waits still for a row that can take it."""
        with self._lock:
            entry = self._held.get(id(item))
            if entry is None:
                return False
            if not self._rows.holds(entry):
                del self._held[id(item)]
                return False
            return True

    def flush(self, timeout: float) -> None:
        """Return when everything is in a row that will be shown.

        Raises:
            DeliveryError: When results wait for a row that only the user can begin.
        """
        if not self._ending:
            self._wait_for_the_user(time.monotonic() + min(timeout, _FOR_THE_USER))
            return
        with self._writing():
            self._rows.drain()
            self._rows.commit()

    def close(self) -> None:
        """Write what waits, then finish the run if it is ours.

        Raises:
            RunIsOver: When the run was finished before everything was written.
        """
        self._pump.stop()
        try:
            self._write_rest()
        finally:
            if self._owned and not self._over:
                self._over = True
                self._run.finish()

    def end_rows(self) -> None:
        """From now on rows are ended for what waits: the user logs no more."""
        self._ending = True

    def end(self) -> None:
        """Write what waits: the run is finished right after."""
        try:
            self._write_rest()
        finally:
            self._over = True

    def _write_rest(self) -> None:
        with self._lock:
            last = self._tables.take_last()
            waits = any(map(self._rows.holds, self._held.values()))
            if self._over and not waits and not last:
                return
        with self._writing():
            for entry in last:
                self._rows.add(entry)
            self._rows.drain()
            self._rows.commit()
            self._log.settle()

    def _progress(self) -> bool:
        with self._lock:
            return not self._over and self._rows.progress()

    def _wait_for_the_user(self, deadline: float) -> None:
        while self._progress():
            if time.monotonic() > deadline:
                raise DeliveryError(
                    "results wait for the next rows of your W&B run, and are shown "
                    "with them, or when the run is closed"
                )
            time.sleep(0.01)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the lock, and learn from wandb that the run is over."""
        from wandb.errors import UsageError

        with self._lock:
            if self._over:
                raise RunIsOver
            try:
                yield
            except UsageError as error:
                self._over = True
                raise RunIsOver from error

    def _entries(self, item: Item) -> list[Entry]:
        match item:
            case FigureItem():
                entries = [figure_entry(item)]
                self._tell_once()
            case JsonItem():
                entries = [json_entry(item, run=self._run_id), *self._table(item)]
            case MetricsItem():
                entries = [metrics_entry(item, mirrored=not self._owned)]
        return entries

    def _tell_once(self) -> None:
        """Say where W&B shows the step of a figure: its slider has its own counter."""
        if not self._told:
            self._told = True
            import wandb

            wandb.termlog(
                "theseus-track: to move through figures by training step, choose "
                "theseus/step as the step metric in the settings of the media panel"
            )

    def _table(self, item: JsonItem) -> list[Entry]:
        entry = table_entry(item)
        shown = entry is not None and self._tables.choose(entry)
        return [entry] if entry is not None and shown else []


def _rows(
    run: Any, log: Log, owned: bool, patience: float, undrawn: Undrawn | None
) -> _Rows:
    if not owned:
        return Rider(log, own_rows=run.settings.mode == "shared")
    start = int(run.starting_step)
    return Owner(log, starting_step=start, patience=patience, undrawn=undrawn)
