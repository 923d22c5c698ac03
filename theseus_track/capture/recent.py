"""A small table that forgets what was not used for longest."""

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["Recent"]

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """Remembers the most recently used values, up to a number of them.

    Args:
        size: How many values are kept, >= 1.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: dict[Hashable, Value] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key, made on first use.

        Two threads that ask at once may both make one; the first kept stays.
        """
        with self._lock:
            if key in self._values:
                self._values[key] = self._values.pop(key)
                return self._values[key]
        made = make()
        with self._lock:
            value = self._values.setdefault(key, made)
            while len(self._values) > self._size:
                del self._values[next(iter(self._values))]
            return value
