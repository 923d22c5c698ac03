"""Writes one item after another to a sink, and settles what becomes of each."""

import logging
from collections.abc import Callable

from theseus_track.records import Item, RunInfo
from theseus_track.sinks.answers import Answers
from theseus_track.sinks.contract import Receipt, Sink
from theseus_track.sinks.desk import Desk
from theseus_track.sinks.guard import Guard
from theseus_track.sinks.retry import RetryPolicy

__all__ = ["Writing"]

_log = logging.getLogger(__name__)


class Writing:
    """Every call of a sink; made on the sink's thread only.

    Attributes:
        guard: What the sink is doing, and what it raised last.
        opened: Whether the sink is open.
    """

    def __init__(
        self,
        sink: Sink,
        info: RunInfo,
        desk: Desk,
        *,
        retry: RetryPolicy,
        answers: Answers,
        guard: Guard,
        on_postpone: Callable[[Item], None] | None,
    ) -> None:
        """Call nothing yet.

        Args:
            sink: A sink that is not open.
            info: The run that it shows.
            desk: How things stand.
            retry: How patient to be.
            answers: Takes each final receipt.
            guard: Calls the sink.
            on_postpone: Called with an item that failed at every try, if something
                brings it back; None: it counts as failed at once.
        """
        self._sink = sink
        self._info = info
        self._desk = desk
        self._retry = retry
        self._answers = answers
        self._on_postpone = on_postpone
        self.guard = guard
        self.opened = False

    def open(self) -> bool:
        """Open the sink; while it cannot be opened it is paused and its items wait."""
        self.opened = self.guard.repeatedly(lambda: self._sink.open(self._info), "open")
        if not self.opened:
            with self._desk.changed:
                self._desk.breaker.trip()
                self._desk.changed.notify_all()
        return self.opened

    def deliver(self, item: Item, *, postponed: bool = False) -> bool:
        """Write one item and keep its receipt; False when it still has to wait.

        Args:
            item: The item.
            postponed: Whether it comes from the backlog. If it fails while others
                pass, the fault is its own; where all fail, it waits there on.
        """
        if not self.opened and not self.open():
            return False
        receipts: list[Receipt] = []
        if self.guard.repeatedly(
            lambda: receipts.append(self._sink.write(item)), "write"
        ):
            with self._desk.changed:
                self._desk.breaker.succeed()
                self._desk.take_up_postponed()
        elif self._desk.left <= 0:
            return False
        else:
            alone = self._note_failure()
            if postponed and not alone:
                return False
            if not postponed and self._postpone(item):
                return True
            receipts.append(Receipt("failed", self.guard.error))
        self._settle(item, receipts[0])
        self._settle_deferred()
        return True

    def flush(self, timeout: float) -> bool:
        """Make everything visible; a sink that never opened holds nothing."""
        done = not self.opened or self._make_visible(
            lambda: self._sink.flush(timeout), "flush"
        )
        self._answers.give_kept()
        return done

    def close(self, timeout: float) -> bool:
        """Close the sink, if it is open; False when it is not closed then."""
        if not self.opened:
            return False
        done = self._make_visible(lambda: self._sink.close(timeout), "close")
        self._answers.give_kept()
        return done

    def _note_failure(self) -> bool:
        """Count an item that failed at every try; True when the one before passed."""
        with self._desk.changed:
            alone = not self._desk.breaker.failing
            paused = self._desk.breaker.fail()
            self._desk.changed.notify_all()
        if paused:
            pause = self._retry.pause
            _log.warning("%s: paused for %g s", self._sink.name, pause)
        return alone

    def _postpone(self, item: Item) -> bool:
        """Leave an item to the ledger; False when nothing would bring it back."""
        if self._on_postpone is None:
            return False
        self._on_postpone(item)
        with self._desk.changed:
            self._desk.in_hand = 0
            self._desk.refuse()
            self._desk.postponed = True
            self._desk.changed.notify_all()
        return True

    def _settle(self, item: Item, receipt: Receipt) -> None:
        with self._desk.changed:
            self._desk.in_hand = 0
            # There is room again.
            self._desk.changed.notify_all()
            if receipt.status == "deferred":
                self._desk.deferred.append(item)
                return
            self._desk.tally.add(receipt)
        self._answers.give(item, receipt)

    def _settle_deferred(self) -> None:
        """Let go of what was deferred and written meanwhile, if the sink can tell."""
        holds = getattr(self._sink, "holds", None)
        if holds is None or not self._desk.deferred:
            return
        kept: list[Item] = []
        if not self.guard.once(
            lambda: kept.extend(filter(holds, self._desk.deferred)), "holds"
        ):
            return
        left = set(map(id, kept))
        with self._desk.changed:
            settled = [item for item in self._desk.deferred if id(item) not in left]
            self._desk.deferred = kept
        for item in settled:
            self._settle(item, Receipt("written"))

    def _make_visible(self, call: Callable[[], None], what: str) -> bool:
        """Flush or close the sink; all that it deferred is written after that."""
        if not self.guard.once(call, what):
            return False
        with self._desk.changed:
            settled, self._desk.deferred = self._desk.deferred, []
        for item in settled:
            self._settle(item, Receipt("written"))
        return True
