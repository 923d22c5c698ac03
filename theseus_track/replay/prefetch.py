"""Prefetch: the next checkpoint is read while this one is computed."""

import concurrent.futures
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

__all__ = ["prefetched"]

T = TypeVar("T")
R = TypeVar("R")


def prefetched(
    items: Sequence[T], read: Callable[[T], R]
) -> Iterator[tuple[T, "concurrent.futures.Future[R]"]]:
    """Yield each item with what `read` makes of it, read one ahead.

    Two are in memory at most: the one that is used and the next.

    Args:
        items: What to read.
        read: Called on one thread, in order.

    Yields:
        The item and a future; its `result()` waits, and raises what `read` raised.
    """
    with concurrent.futures.ThreadPoolExecutor(1, "theseus-prefetch") as pool:
        ahead = [pool.submit(read, item) for item in items[:1]]
        for index, item in enumerate(items):
            future = ahead.pop()
            # Wait for this one before the next begins, so that two exist at most.
            concurrent.futures.wait([future])
            ahead += [
                pool.submit(read, later) for later in items[index + 1 : index + 2]
            ]
            yield item, future
