"""Delivers items to one sink on a thread of its own, so that nobody waits for it."""

import enum
import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeAlias

from theseus_track.records import Item, RunInfo
from theseus_track.sinks.contract import Receipt, Sink
from theseus_track.sinks.guard import Guard
from theseus_track.sinks.queueing import ItemQueue
from theseus_track.sinks.report import SinkReport, Tally
from theseus_track.sinks.retry import Breaker, RetryPolicy

__all__ = ["Backlog", "Delivery", "OnReceipt"]

OnReceipt: TypeAlias = Callable[[str, Item, Receipt], None]
Backlog: TypeAlias = Callable[[], Iterable[Item]]

_log = logging.getLogger(__name__)
_CAPACITY = 64 * 1024 * 1024
# A sink that uses up the time given to `close` still has a moment to say so.
_GRACE = 0.5
# How often a sink is asked whether it keeps what it took, in seconds.
_ASKED_EVERY = 1.0


class _Job(enum.Enum):
    """What the owner thread does next, besides writing an item."""

    CATCH_UP = enum.auto()
    MARK = enum.auto()
    FLUSH = enum.auto()
    CLOSE = enum.auto()


class Delivery:
    """Owns a sink: the only caller of it, on one daemon thread.

    A sink that raises is tried again with growing pauses, and left alone for a
    while when its items keep failing; a sink that blocks holds its thread and
    nothing else. What does not fit into memory is refused, counted and taken from
    `backlog` later; until that is done everything is refused, so that no newer
    step overtakes one that waits in the ledger. What failed at every try is taken
    from there too, once, as soon as the sink takes something again.
    """

    def __init__(
        self,
        sink: Sink,
        info: RunInfo,
        *,
        on_receipt: OnReceipt | None = None,
        backlog: Backlog | None = None,
        on_postpone: Callable[[Item], None] | None = None,
        capacity_bytes: int = _CAPACITY,
        retry: RetryPolicy | None = None,
    ) -> None:
        """Start the thread, which opens the sink at once.

        Args:
            sink: A sink that is not open.
            info: The run that it shows.
            on_receipt: Called with the sink's name, the item and its final receipt
                (never `deferred`), on the sink's thread; keep it short. What the
                tracker may still forget is told when it does not any more.
            backlog: Gives the items of the ledger that have no receipt from this
                sink, in step order; called on the sink's thread after an overflow.
                None: they stay pending.
            on_postpone: Called on the sink's thread with an item that failed at every
                try, so that `backlog` gives it; None: it counts as failed at once.
            capacity_bytes: The most that waits in memory.
            retry: How patient to be; the default is `RetryPolicy()`.
        """
        self._sink = sink
        self._info = info
        self._on_receipt = on_receipt
        self._backlog = backlog
        self._on_postpone = on_postpone
        self._retry = retry or RetryPolicy()
        self._guard = Guard(sink.name, self._retry, self._sleep)
        # Everything below is guarded by this condition; the sink is never called
        # while it is held, so that `offer` cannot wait for the sink.
        self._changed = threading.Condition()
        self._queue = ItemQueue(capacity_bytes)
        self._tally = Tally(sink.name)
        self._breaker = Breaker(self._retry)
        self._deferred: list[Item] = []
        # Written, but lost to the tracker if this process died now.
        self._unkept: list[tuple[Item, Receipt]] = []
        self._asked = 0.0
        self._refused = 0
        self._refused_ever = 0
        # Items that failed at every try and wait in the ledger for a better time.
        self._postponed = False
        self._behind = False
        self._in_hand = 0
        self._opened = False
        self._flushes_wanted = 0
        self._flushes_done = 0
        self._flush_deadline = 0.0
        self._flushed = False
        self._deadline: float | None = None
        self._sink_closed = False
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._own, name=f"theseus-sink-{sink.name}", daemon=True
        )
        self._thread.start()

    def offer(self, item: Item) -> bool:
        """Hand an item over without waiting.

        Returns:
            True when the item will be delivered from memory. False when there is
            no room, or the delivery is closed: the item counts as pending and is
            delivered later from the ledger.
        """
        with self._changed:
            full = self._deadline is not None or self._behind
            if not full and self._queue.push(item):
                self._changed.notify_all()
                return True
            self._refused += 1
            self._refused_ever += 1
            self._behind = self._behind or self._backlog is not None
            new = self._tally.note("more was logged than the sink took in time")
            self._changed.notify_all()
        if new:
            _log.info("%s: the queue is full; later from the ledger", self._sink.name)
        return False

    def put(self, item: Item, timeout: float) -> bool:
        """Hand an item over as soon as there is room for it.

        Args:
            item: The item.
            timeout: The longest wait, in seconds.

        Returns:
            False when it was not taken: there was no room, the sink is paused after
            failures, or the delivery is closed. It counts as never offered.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            while self._deadline is None and not self._breaker.remaining():
                if self._queue.push(item):
                    self._changed.notify_all()
                    return True
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    return False
            return False

    def hand_over(self, timeout: float) -> bool:
        """Wait until the sink was given everything offered, shown or not.

        Args:
            timeout: The longest wait, in seconds.

        Returns:
            False when it was not, or the sink is paused after failures.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            while self._queue or self._in_hand:
                left = deadline - time.monotonic()
                if left <= 0 or self._breaker.remaining() or self._ended.is_set():
                    return False
                self._changed.wait(left)
            return True

    def flush(self, timeout: float) -> bool:
        """Wait until everything offered can be read by others.

        Args:
            timeout: The longest wait, in seconds.

        Returns:
            True when nothing is pending. A paused sink is tried once more.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            self._flushes_wanted += 1
            self._flush_deadline = max(self._flush_deadline, deadline)
            self._take_up_postponed()
            self._breaker.end_pause()
            ticket = self._flushes_wanted
            self._changed.notify_all()
            done = self._changed.wait_for(
                lambda: self._flushes_done >= ticket or self._ended.is_set(), timeout
            )
            return done and self._flushed and self._pending() == 0

    def close(self, timeout: float) -> SinkReport:
        """Deliver what waits, close the sink, and tell what became of everything.

        Args:
            timeout: The longest wait, in seconds; the thread of a sink that takes
                longer is left behind and does not hold the process.
        """
        with self._changed:
            if self._deadline is None:
                self._deadline = time.monotonic() + timeout
                self._take_up_postponed()
                self._breaker.end_pause()
            self._changed.notify_all()
        self._ended.wait(timeout + _GRACE)
        return self.report()

    def report(self) -> SinkReport:
        """Tell how things stand now."""
        ended = self._ended.is_set()
        blocked = "" if ended else self._guard.doing
        with self._changed:
            pending = self._pending()
            missing = pending or (ended and not self._sink_closed)
            return self._tally.report(
                pending=pending,
                closed=self._sink_closed,
                blocked=f"the sink has not returned from {blocked}" if blocked else "",
                error=self._guard.error if missing else "",
            )

    def _pending(self) -> int:
        waiting = len(self._queue) + self._in_hand + len(self._deferred)
        return waiting + self._refused

    def _take_up_postponed(self) -> None:
        """Have the backlog delivered, with those that failed; under the lock."""
        self._behind = self._behind or self._postponed
        self._postponed = False

    # What follows runs on the owner thread.

    def _own(self) -> None:
        try:
            self._try_open()
            while (job := self._next()) is not _Job.CLOSE:
                self._do(job)
            self._close_sink()
        finally:
            self._ended.set()
            with self._changed:
                self._changed.notify_all()

    def _next(self) -> Item | _Job:
        """Wait for something to do."""
        with self._changed:
            while True:
                paused = self._breaker.remaining()
                stopping = self._deadline is not None
                if stopping and (paused or self._left() <= 0):
                    return _Job.CLOSE
                if not paused and self._queue:
                    self._in_hand = 1
                    return self._queue.pop()
                if not paused and self._behind:
                    return _Job.CATCH_UP
                if self._flushes_done < self._flushes_wanted:
                    return _Job.FLUSH
                if stopping:
                    return _Job.CLOSE
                if self._unkept and time.monotonic() - self._asked > _ASKED_EVERY:
                    return _Job.MARK
                self._changed.wait(paused or (_ASKED_EVERY if self._unkept else None))

    def _do(self, job: Item | _Job) -> None:
        if job is _Job.FLUSH:
            self._flush_sink()
        elif job is _Job.MARK:
            self._mark_kept()
        elif job is _Job.CATCH_UP:
            self._catch_up()
        elif not isinstance(job, _Job) and not self._deliver(job):
            with self._changed:
                self._in_hand = 0
                self._queue.put_back(job)

    def _left(self) -> float:
        """Seconds until the end of `close`."""
        deadline = self._deadline
        return float("inf") if deadline is None else deadline - time.monotonic()

    def _sleep(self, seconds: float) -> bool:
        """Wait between two tries; False when `close` leaves no time for another."""
        end = time.monotonic() + seconds
        with self._changed:
            while (rest := min(end - time.monotonic(), self._left())) > 0:
                self._changed.wait(rest)
        return self._left() > 0

    def _try_open(self) -> bool:
        """Open the sink; while it cannot be opened it is paused and its items wait."""
        self._opened = self._guard.repeatedly(
            lambda: self._sink.open(self._info), "open"
        )
        if not self._opened:
            with self._changed:
                self._breaker.trip()
                self._changed.notify_all()
        return self._opened

    def _deliver(self, item: Item, *, postponed: bool = False) -> bool:
        """Write one item and keep its receipt; False when it still has to wait.

        Args:
            item: The item.
            postponed: Whether it comes from the backlog. If it fails while others
                pass, the fault is its own; where all fail, it waits there on.
        """
        if not self._opened and not self._try_open():
            return False
        receipts: list[Receipt] = []
        if self._guard.repeatedly(
            lambda: receipts.append(self._sink.write(item)), "write"
        ):
            with self._changed:
                self._breaker.succeed()
                self._take_up_postponed()
        elif self._left() <= 0:
            return False
        else:
            alone = self._note_failure()
            if postponed and not alone:
                return False
            if not postponed and self._postpone(item):
                return True
            receipts.append(Receipt("failed", self._guard.error))
        self._settle(item, receipts[0])
        self._settle_deferred()
        return True

    def _note_failure(self) -> bool:
        """Count an item that failed at every try; True when the one before passed."""
        with self._changed:
            alone = not self._breaker.failing
            paused = self._breaker.fail()
            self._changed.notify_all()
        if paused:
            pause = self._retry.pause
            _log.warning("%s: paused for %g s", self._sink.name, pause)
        return alone

    def _postpone(self, item: Item) -> bool:
        """Leave an item to the ledger; False when nothing would bring it back."""
        if self._on_postpone is None or self._backlog is None:
            return False
        self._on_postpone(item)
        with self._changed:
            self._in_hand = 0
            self._refused += 1
            self._refused_ever += 1
            self._postponed = True
            self._changed.notify_all()
        return True

    def _settle(self, item: Item, receipt: Receipt) -> None:
        with self._changed:
            self._in_hand = 0
            # There is room again.
            self._changed.notify_all()
            if receipt.status == "deferred":
                self._deferred.append(item)
                return
            self._tally.add(receipt)
        if receipt.status == "written" and hasattr(self._sink, "keeps"):
            self._unkept.append((item, receipt))
        else:
            self._answer(item, receipt)

    def _mark_kept(self) -> None:
        """Answer for what the tracker would not forget any more."""
        self._asked = time.monotonic()
        keeps = getattr(self._sink, "keeps", None)
        kept: list[bool] = []
        if keeps is None or not self._guard.once(
            lambda: kept.extend(keeps(item) for item, _ in self._unkept), "keeps"
        ):
            return
        pairs = list(zip(self._unkept, kept, strict=True))
        self._unkept = [pair for pair, is_kept in pairs if not is_kept]
        for (item, receipt), is_kept in pairs:
            if is_kept:
                self._answer(item, receipt)

    def _answer(self, item: Item, receipt: Receipt) -> None:
        if self._on_receipt is None:
            return
        try:
            self._on_receipt(self._sink.name, item, receipt)
        except Exception:  # noqa: BLE001 (logged with its traceback)
            # A full disk under the ledger's mark must not end the delivery; the
            # item is then delivered once more, which a sink must bear.
            _log.exception("%s: a receipt could not be kept", self._sink.name)

    def _settle_deferred(self) -> None:
        """Let go of what was deferred and written meanwhile, if the sink can tell."""
        holds = getattr(self._sink, "holds", None)
        if holds is None or not self._deferred:
            return
        kept: list[Item] = []
        if not self._guard.once(
            lambda: kept.extend(filter(holds, self._deferred)), "holds"
        ):
            return
        left = set(map(id, kept))
        with self._changed:
            settled = [item for item in self._deferred if id(item) not in left]
            self._deferred = kept
        for item in settled:
            self._settle(item, Receipt("written"))

    def _catch_up(self) -> None:
        """Deliver from the ledger what was refused or postponed."""
        with self._changed:
            seen = self._refused_ever
        ends: list[bool] = []
        readable = self._guard.once(
            lambda: ends.append(self._deliver_backlog()), "reading the backlog"
        )
        with self._changed:
            if readable and ends[0]:
                # Those refused meanwhile may have been missed: then once more.
                self._refused = self._refused_ever - seen
                self._behind = self._refused > 0
                return
            self._breaker.trip()
            if self._deadline is not None:
                # It was the last try; what is left is pending.
                self._behind = False

    def _deliver_backlog(self) -> bool:
        """Go through the backlog; False when the sink takes nothing or time is up."""
        for item in self._backlog() if self._backlog else ():
            if not self._deliver(item, postponed=True) or self._left() <= 0:
                return False
            with self._changed:
                self._refused = max(0, self._refused - 1)
        return True

    def _flush_sink(self) -> None:
        with self._changed:
            ticket = self._flushes_wanted
            left = max(0.0, self._flush_deadline - time.monotonic())
            paused = self._breaker.remaining() > 0
        # A sink that never opened holds nothing; what waits for it is pending.
        flushed = not self._opened or (
            not paused and self._make_visible(lambda: self._sink.flush(left), "flush")
        )
        self._mark_kept()
        with self._changed:
            self._flushed = flushed
            self._flushes_done = ticket
            self._changed.notify_all()

    def _close_sink(self) -> None:
        if self._opened:
            left = max(0.0, self._left())
            self._sink_closed = self._make_visible(
                lambda: self._sink.close(left), "close"
            )
            self._mark_kept()

    def _make_visible(self, call: Callable[[], None], what: str) -> bool:
        """Flush or close the sink; all that it deferred is written after that."""
        if not self._guard.once(call, what):
            return False
        with self._changed:
            settled, self._deferred = self._deferred, []
        for item in settled:
            self._settle(item, Receipt("written"))
        return True
