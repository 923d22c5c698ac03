"""Delivers items to one sink on a thread of its own, so that nobody waits for it."""

import logging
import time
from collections.abc import Callable

from theseus_track.records import Item, RunInfo
from theseus_track.sinks.answers import Answers, OnReceipt
from theseus_track.sinks.contract import Sink
from theseus_track.sinks.desk import Desk
from theseus_track.sinks.guard import Guard
from theseus_track.sinks.owner import Backlog, Owner
from theseus_track.sinks.report import SinkReport
from theseus_track.sinks.retry import RetryPolicy
from theseus_track.sinks.writing import Writing

__all__ = ["Backlog", "Delivery", "OnReceipt"]

_log = logging.getLogger(__name__)
_CAPACITY = 64 * 1024 * 1024
# A sink that uses up the time given to `close` still has a moment to say so.
_GRACE = 0.5


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
        retry = retry or RetryPolicy()
        self._name = sink.name
        self._desk = Desk(sink.name, capacity=capacity_bytes, retry=retry)
        self._catches_up = backlog is not None
        self._guard = Guard(sink.name, retry, self._desk.sleep)
        answers = Answers(sink, self._guard, on_receipt)
        writing = Writing(
            sink,
            info,
            self._desk,
            retry=retry,
            answers=answers,
            guard=self._guard,
            on_postpone=on_postpone if self._catches_up else None,
        )
        Owner(sink.name, self._desk, writing=writing, answers=answers, backlog=backlog)

    def offer(self, item: Item) -> bool:
        """Hand an item over without waiting.

        Returns:
            True when the item will be delivered from memory. False when there is
            no room, or the delivery is closed: the item counts as pending and is
            delivered later from the ledger.
        """
        desk = self._desk
        with desk.changed:
            full = desk.deadline is not None or desk.behind
            if not full and desk.queue.push(item):
                desk.changed.notify_all()
                return True
            desk.refuse()
            desk.behind = desk.behind or self._catches_up
            new = desk.tally.note("more was logged than the sink took in time")
            desk.changed.notify_all()
        if new:
            _log.info("%s: the queue is full; later from the ledger", self._name)
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
        desk, deadline = self._desk, time.monotonic() + timeout
        with desk.changed:
            while desk.deadline is None and not desk.breaker.remaining():
                if desk.queue.push(item):
                    desk.changed.notify_all()
                    return True
                if not desk.changed.wait(max(0.0, deadline - time.monotonic())):
                    return False
            return False

    def hand_over(self, timeout: float) -> bool:
        """Wait until the sink was given everything offered, shown or not.

        Args:
            timeout: The longest wait, in seconds.

        Returns:
            False when it was not, or the sink is paused after failures.
        """
        desk, deadline = self._desk, time.monotonic() + timeout
        with desk.changed:
            while desk.queue or desk.in_hand:
                left = deadline - time.monotonic()
                if left <= 0 or desk.breaker.remaining() or desk.ended.is_set():
                    return False
                desk.changed.wait(left)
            return True

    def flush(self, timeout: float) -> bool:
        """Wait until everything offered can be read by others.

        Args:
            timeout: The longest wait, in seconds.

        Returns:
            True when nothing is pending. A paused sink is tried once more.
        """
        desk, deadline = self._desk, time.monotonic() + timeout
        with desk.changed:
            desk.flushes_wanted += 1
            desk.flush_deadline = max(desk.flush_deadline, deadline)
            desk.take_up_postponed()
            desk.breaker.end_pause()
            ticket = desk.flushes_wanted
            desk.changed.notify_all()
            done = desk.changed.wait_for(
                lambda: desk.flushes_done >= ticket or desk.ended.is_set(), timeout
            )
            return done and desk.flushed and desk.pending == 0

    def begin_close(self, timeout: float) -> None:
        """Take no more, and let the sink come to its end while others do.

        Args:
            timeout: What is left for that, in seconds; the first call counts.
        """
        desk = self._desk
        with desk.changed:
            if desk.deadline is None:
                desk.deadline = time.monotonic() + timeout
                desk.take_up_postponed()
                desk.breaker.end_pause()
            desk.changed.notify_all()

    def close(self, timeout: float) -> SinkReport:
        """Deliver what waits, close the sink, and tell what became of everything.

        Args:
            timeout: The longest wait, in seconds; the thread of a sink that takes
                longer is left behind and does not hold the process.
        """
        self.begin_close(timeout)
        self._desk.ended.wait(timeout + _GRACE)
        return self.report()

    def report(self) -> SinkReport:
        """Tell how things stand now."""
        desk = self._desk
        ended = desk.ended.is_set()
        blocked = "" if ended else self._guard.doing
        with desk.changed:
            missing = desk.pending or (ended and not desk.closed)
            return desk.tally.report(
                pending=desk.pending,
                closed=desk.closed,
                blocked=f"the sink has not returned from {blocked}" if blocked else "",
                error=self._guard.error if missing else "",
            )
