"""The thread that owns a sink: what it does next, until the delivery is closed."""

import enum
import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeAlias

from theseus_track.records import Item
from theseus_track.sinks.answers import Answers
from theseus_track.sinks.desk import Desk
from theseus_track.sinks.writing import Writing

__all__ = ["Backlog", "Owner"]

Backlog: TypeAlias = Callable[[], Iterable[Item]]


class _Job(enum.Enum):
    """What the owner thread does next, besides writing an item."""

    CATCH_UP = enum.auto()
    MARK = enum.auto()
    FLUSH = enum.auto()
    CLOSE = enum.auto()


class Owner:
    """A daemon thread that opens a sink, works through the desk, and closes it."""

    def __init__(
        self,
        name: str,
        desk: Desk,
        *,
        writing: Writing,
        answers: Answers,
        backlog: Backlog | None,
    ) -> None:
        """Start the thread.

        Args:
            name: The sink's name.
            desk: How things stand.
            writing: Calls the sink.
            answers: What the sink has still to keep.
            backlog: Gives what waits in the ledger, in step order.
        """
        self._desk = desk
        self._writing = writing
        self._answers = answers
        self._backlog = backlog
        thread = threading.Thread(
            target=self._own, name=f"theseus-sink-{name}", daemon=True
        )
        thread.start()

    def _own(self) -> None:
        desk = self._desk
        try:
            self._writing.open()
            while (job := self._next()) is not _Job.CLOSE:
                self._do(job)
            desk.closed = self._writing.close(max(0.0, desk.left))
        finally:
            desk.ended.set()
            with desk.changed:
                desk.changed.notify_all()

    def _next(self) -> Item | _Job:
        """Wait for something to do."""
        desk = self._desk
        with desk.changed:
            while True:
                paused = desk.breaker.remaining()
                stopping = desk.deadline is not None
                if stopping and (paused or desk.left <= 0):
                    return _Job.CLOSE
                if not paused and desk.queue:
                    desk.in_hand = 1
                    return desk.queue.pop()
                if not paused and desk.behind:
                    return _Job.CATCH_UP
                if desk.flushes_done < desk.flushes_wanted:
                    return _Job.FLUSH
                if stopping:
                    return _Job.CLOSE
                if self._answers.due:
                    return _Job.MARK
                desk.changed.wait(paused or self._answers.again_in)

    def _do(self, job: Item | _Job) -> None:
        if job is _Job.FLUSH:
            self._flush()
        elif job is _Job.MARK:
            self._answers.give_kept()
        elif job is _Job.CATCH_UP:
            self._catch_up()
        elif not isinstance(job, _Job) and not self._writing.deliver(job):
            with self._desk.changed:
                self._desk.in_hand = 0
                self._desk.queue.put_back(job)

    def _catch_up(self) -> None:
        """Deliver from the ledger what was refused or postponed."""
        desk = self._desk
        with desk.changed:
            seen = desk.refused_ever
        ends: list[bool] = []
        readable = self._writing.guard.once(
            lambda: ends.append(self._deliver_backlog()), "reading the backlog"
        )
        with desk.changed:
            if readable and ends[0]:
                # Those refused meanwhile may have been missed: then once more.
                desk.refused = desk.refused_ever - seen
                desk.behind = desk.refused > 0
                return
            desk.breaker.trip()
            if desk.deadline is not None:
                # It was the last try; what is left is pending.
                desk.behind = False

    def _deliver_backlog(self) -> bool:
        """Go through the backlog; False when the sink takes nothing or time is up."""
        desk = self._desk
        for item in self._backlog() if self._backlog else ():
            if not self._writing.deliver(item, postponed=True) or desk.left <= 0:
                return False
            with desk.changed:
                desk.refused = max(0, desk.refused - 1)
        return True

    def _flush(self) -> None:
        desk = self._desk
        with desk.changed:
            ticket = desk.flushes_wanted
            left = max(0.0, desk.flush_deadline - time.monotonic())
            paused = desk.breaker.remaining() > 0
        if paused and self._writing.opened:
            self._answers.give_kept()
            flushed = False
        else:
            flushed = self._writing.flush(left)
        with desk.changed:
            desk.flushed = flushed
            desk.flushes_done = ticket
            desk.changed.notify_all()
