"""What one sink's thread and those who hand items to it know in common."""

import threading
import time

from theseus_track.records import Item
from theseus_track.sinks.queueing import ItemQueue
from theseus_track.sinks.report import Tally
from theseus_track.sinks.retry import Breaker, RetryPolicy

__all__ = ["Desk"]


class Desk:
    """The items of one sink and how things stand with them.

    Everything is guarded by `changed`, also for the methods, unless they say
    otherwise. A sink is never called while it is held, so that nobody who hands an
    item over can wait for the sink.

    Attributes:
        changed: The lock, notified of every change.
        queue: What waits in memory.
        tally: What became of what was answered for.
        breaker: Whether the sink is paused after failures.
        in_hand: How many items the sink is writing: 0 or 1.
        deferred: Items that the sink holds and writes by itself.
        refused: How many items wait in the ledger, and
        refused_ever: how many ever did.
        behind: Whether those are to be delivered before anything newer is taken.
        postponed: Whether some of them failed at every try and wait for a better time.
        flushes_wanted: How many flushes were asked for, and
        flushes_done: how many were done,
        flushed: the last of them well.
        flush_deadline: The latest time that a flush may take, on the monotonic clock.
        deadline: When `close` ends; None before it is called.
        closed: Whether the sink closed.
        ended: Set when the sink's thread is over.
    """

    def __init__(self, name: str, *, capacity: int, retry: RetryPolicy) -> None:
        """Start empty.

        Args:
            name: The sink's name.
            capacity: The most that waits in memory, in bytes.
            retry: How patient to be.
        """
        self.changed = threading.Condition()
        self.queue = ItemQueue(capacity)
        self.tally = Tally(name)
        self.breaker = Breaker(retry)
        self.in_hand = 0
        self.deferred: list[Item] = []
        self.refused = 0
        self.refused_ever = 0
        self.behind = False
        self.postponed = False
        self.flushes_wanted = 0
        self.flushes_done = 0
        self.flushed = False
        self.flush_deadline = 0.0
        self.deadline: float | None = None
        self.closed = False
        self.ended = threading.Event()

    @property
    def pending(self) -> int:
        """How many items are not delivered."""
        waiting = len(self.queue) + self.in_hand + len(self.deferred)
        return waiting + self.refused

    @property
    def left(self) -> float:
        """Seconds until the end of `close`; needs no lock."""
        deadline = self.deadline
        return float("inf") if deadline is None else deadline - time.monotonic()

    def refuse(self) -> None:
        """Count an item that is delivered later from the ledger."""
        self.refused += 1
        self.refused_ever += 1

    def take_up_postponed(self) -> None:
        """Have what waits in the ledger delivered, with what failed."""
        self.behind = self.behind or self.postponed
        self.postponed = False

    def sleep(self, seconds: float) -> bool:
        """Wait between two tries; False when `close` leaves no time for another.

        Takes the lock itself.
        """
        end = time.monotonic() + seconds
        with self.changed:
            while (rest := min(end - time.monotonic(), self.left)) > 0:
                self.changed.wait(rest)
        return self.left > 0
