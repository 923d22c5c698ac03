"""One W&B run that is being written: items in, rows out, and its end in time."""

import contextlib
import threading
import time
from collections.abc import Iterator

from theseus_track.errors import DeliveryError
from theseus_track.records import FigureItem, Item, JsonItem, MetricsItem
from theseus_track.sinks.contract import Backfill
from theseus_track.sinks.wandb.choice import Chosen
from theseus_track.sinks.wandb.content import (
    figure_entry,
    json_entry,
    json_numbers,
    metrics_entry,
    metrics_numbers,
    table_entry,
)
from theseus_track.sinks.wandb.entry import Entry
from theseus_track.sinks.wandb.log import Log
from theseus_track.sinks.wandb.owning import Undrawn
from theseus_track.sinks.wandb.pump import Pump
from theseus_track.sinks.wandb.rows import kept_after, rows_of
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


class Place:
    """Writes to one run until it is over; thread-safe.

    Its callers are the owner thread, the pump's thread, and the user's thread when
    it finishes the run.
    """

    def __init__(
        self,
        chosen: Chosen,
        *,
        run_id: str,
        patience: float,
        undrawn: Undrawn | None,
        backfill: Backfill | None = None,
    ) -> None:
        """Take a run that is not finished.

        Args:
            chosen: The W&B run, and how to write to it.
            run_id: The id of the run in the ledger.
            patience: The longest that a row of ours waits for figures, in seconds.
            undrawn: Gives the lowest step of which a figure is still to come.
            backfill: The run as the ledger has it, if it is shown afterwards.
        """
        self._run = chosen.run
        self._owned = chosen.owned
        self._mirrored = not chosen.metrics
        self._run_id = run_id
        self._backfill = backfill
        self._lock = threading.RLock()
        self._log = Log(chosen.run)
        self._rows = rows_of(chosen, self._log, patience=patience, undrawn=undrawn)
        self._tables = TableVersions()
        self._pump = Pump(self._progress)
        self._held: dict[int, Entry] = {}
        self._unkept: dict[int, list[Entry]] = {}
        self._kept_after = kept_after(chosen.run.settings)
        self._ending = chosen.owned
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
            self._unkept[id(item)] = entries
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

    def keeps(self, item: Item) -> bool:
        """Tell whether W&B would have an item if this process were killed now."""
        with self._lock:
            if not self._over:
                self._rows.look()
            ends = [
                None if entry.row is None else entry.row.ended
                for entry in self._unkept.get(id(item), ())
            ]
            limit = time.monotonic() - self._kept_after
            kept = all(end is not None and end < limit for end in ends)
            if kept:
                self._unkept.pop(id(item), None)
            return kept

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
            DeliveryError: When the server did not take all of a run of ours.
        """
        self._pump.stop()
        try:
            self._write_rest()
        finally:
            if self._owned and not self._over:
                self._over = True
                self._finish()

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
            self._recall()
            self._log.settle()

    def _finish(self) -> None:
        try:
            self._run.finish()
        except TimeoutError as error:
            directory = self._run.settings.sync_dir
            raise DeliveryError(
                "the server of W&B did not take everything in time; what is missing "
                f"there is sent by: wandb sync {directory}"
            ) from error

    def _recall(self) -> None:
        """Learn the values of higher steps, which the run shows since before."""
        if self._backfill is None:
            return
        for item in self._backfill.values():
            if isinstance(item, JsonItem):
                self._log.recall(item.step, json_numbers(item))
        for item in () if self._mirrored else self._backfill.metrics():
            if isinstance(item, MetricsItem):
                self._log.recall(item.step, metrics_numbers(item, mirrored=False))

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
                entries = [metrics_entry(item, mirrored=self._mirrored)]
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
