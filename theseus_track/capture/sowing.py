"""Where marked values come from: `tap`, and `sow` as long as anybody traces."""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from theseus_track.capture.marked import Marked, NamesOf, Running
from theseus_track.capture.quiet import QUIET

__all__ = ["showing", "tapped"]


class _Here(threading.local):
    """The private traces of this thread."""

    def __init__(self) -> None:
        self.running: list[Running] = []


_here = _Here()


def tapped(name: str, output: Any, value: Any) -> Any:
    """Show a tapped value to all private traces; return the output."""
    if QUIET.on:
        return output
    for running in reversed(_here.running):
        output = running.tap(name, output, value)
    return output


@contextlib.contextmanager
def showing(
    running: Running, modules: Sequence[tuple[type, NamesOf]]
) -> Iterator[None]:
    """Show marked values to a private trace.

    Args:
        running: The calls of the trace.
        modules: The base classes of modules whose `sow` counts; with each a function
            that gives the names of a module from the root down.
    """
    for cls, names_of in modules:
        _sowing.wrap(cls, names_of)
    _here.running.append(running)
    try:
        yield
    finally:
        _here.running.pop()
        for cls, _ in modules:
            _sowing.restore(cls)


class _Sowing:
    """`sow` of the base classes, wrapped as long as anybody traces.

    No interceptor is told of it. Other threads go through the wrapper too, but show
    nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: dict[type, int] = {}
        self._wrapped: dict[type, tuple[Any, Any]] = {}

    def wrap(self, cls: Any, names_of: NamesOf) -> None:
        with self._lock:
            self._users[cls] = self._users.get(cls, 0) + 1
            if cls not in self._wrapped:
                wrapper = _wrapper(cls.sow, names_of)
                self._wrapped[cls] = (cls.sow, wrapper)
                cls.sow = wrapper

    def restore(self, cls: Any) -> None:
        with self._lock:
            self._users[cls] -= 1
            if self._users[cls]:
                return
            original, wrapper = self._wrapped.pop(cls)
            if vars(cls).get("sow") is wrapper:
                cls.sow = original


_sowing = _Sowing()


def _wrapper(original: Callable[..., bool], names_of: NamesOf) -> Callable[..., bool]:
    @functools.wraps(original)
    def sow(
        self: Any, collection: Any, name: str, value: Any, *args: Any, **kwargs: Any
    ) -> bool:
        names = None if QUIET.on or not _here.running else names_of(self)
        if names is not None:
            for running in reversed(_here.running):
                marked = Marked(name, value, sown=True, collection=collection)
                value = running.sow(marked, names)
        return original(self, collection, name, value, *args, **kwargs)

    return sow
