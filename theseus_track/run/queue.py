"""A queue that is bounded in bytes and can say when all of its work is done."""

import collections
import threading
import time
from typing import Generic, TypeVar

__all__ = ["ByteQueue"]

T = TypeVar("T")


class ByteQueue(Generic[T]):
    """First in, first out, bounded by the bytes that its items hold.

    One item is always admitted to an empty queue, however large it is.
    """

    def __init__(self, capacity: int | None) -> None:
        """Make an empty queue.

        Args:
            capacity: The most that queued items may hold, in bytes; None: no bound.
        """
        self._capacity = capacity
        self._items: collections.deque[tuple[T, int]] = collections.deque()
        self._bytes = 0
        self._unfinished = 0
        self._closed = False
        self._changed = threading.Condition()

    @property
    def bytes(self) -> int:
        """What the queued items hold, in bytes."""
        return self._bytes

    def put(self, item: T, size: int, *, timeout: float) -> bool:
        """Append an item; False if there was no room within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while not self._closed and self._full(size):
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    return False
            if self._closed:
                return False
            self._items.append((item, size))
            self._bytes += size
            self._unfinished += 1
            self._changed.notify_all()
            return True

    def get(self, timeout: float) -> T | None:
        """Take the oldest item, or None after `timeout` seconds or when closed."""
        with self._changed:
            if not self._items and not self._closed:
                self._changed.wait(timeout)
            if not self._items:
                return None
            item, size = self._items.popleft()
            self._bytes -= size
            self._changed.notify_all()
            return item

    def done(self) -> None:
        """Say that an item that was taken has been worked off."""
        with self._changed:
            self._unfinished -= 1
            self._changed.notify_all()

    def join(self, deadline: float) -> bool:
        """Wait until all is worked off, or until `deadline` on the monotonic clock."""
        with self._changed:
            while self._unfinished:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
            return True

    def close(self) -> None:
        """Admit nothing more; what is queued can still be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def closed(self) -> bool:
        """Whether the queue is closed and empty."""
        with self._changed:
            return self._closed and not self._items

    def _full(self, size: int) -> bool:
        if self._capacity is None or not self._items:
            return False
        return self._bytes + size > self._capacity
