"""The items that wait for one sink, bounded in bytes, ascending in step per key."""

import collections
import heapq
import itertools
from typing import TypeAlias

from theseus_track.records import FigureItem, Item, JsonItem, MetricsItem

__all__ = ["ItemQueue", "Key", "item_bytes", "key_of"]

Key: TypeAlias = tuple[str, ...]
"""The kind, NAME and part of an item: what a tracker shows as one series."""

_OVERHEAD = 256


class ItemQueue:
    """Items in the order of arrival, but within one key the lowest step first.

    A figure that took long to draw so passes a newer one of its key that still
    waits, and no other key waits for it. Not thread-safe: its owner has the lock.
    """

    def __init__(self, capacity: int) -> None:
        """Start empty.

        Args:
            capacity: The most that may wait, in bytes. One item always fits into
                an empty queue, however large it is.
        """
        self._capacity = capacity
        self._turns: collections.deque[Key] = collections.deque()
        self._items: dict[Key, list[tuple[int, int, Item]]] = {}
        self._arrival = itertools.count()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._turns)

    def push(self, item: Item) -> bool:
        """Take an item; False when there is no room for it."""
        size = item_bytes(item)
        if self._turns and self._bytes + size > self._capacity:
            return False
        self._turns.append(self._keep(item, next(self._arrival)))
        return True

    def put_back(self, item: Item) -> None:
        """Return an item that was popped and could not be delivered, as the first."""
        self._turns.appendleft(self._keep(item, -next(self._arrival)))

    def pop(self) -> Item:
        """Give the next item; the queue must not be empty."""
        key = self._turns.popleft()
        waiting = self._items[key]
        item = heapq.heappop(waiting)[2]
        if not waiting:
            del self._items[key]
        self._bytes -= item_bytes(item)
        return item

    def _keep(self, item: Item, rank: int) -> Key:
        """Put an item among those of its key, by step and then by rank."""
        key = key_of(item)
        heapq.heappush(self._items.setdefault(key, []), (item.step, rank, item))
        self._bytes += item_bytes(item)
        return key


def key_of(item: Item) -> Key:
    """Return the key whose steps must ascend."""
    match item:
        case FigureItem():
            return ("figure", item.name, item.part)
        case JsonItem():
            return ("json", item.name, item.part)
        case MetricsItem():
            return ("metrics",)


def item_bytes(item: Item) -> int:
    """Estimate what an item holds in memory, in bytes."""
    match item:
        case FigureItem():
            return _OVERHEAD + len(item.png) + len(item.pdf)
        case JsonItem():
            return _OVERHEAD + _json_bytes(item.value)
        case MetricsItem():
            return _OVERHEAD + _OVERHEAD * len(item.metrics)


def _json_bytes(value: object) -> int:
    if isinstance(value, dict):
        return 64 + sum(64 + len(k) + _json_bytes(v) for k, v in value.items())
    if isinstance(value, list):
        return 64 + sum(8 + _json_bytes(v) for v in value)
    return 48 + (len(value) if isinstance(value, str) else 0)
