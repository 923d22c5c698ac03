"""Keeps a failing read from printing pages: its exception says what went wrong."""

import contextlib
import gc
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["quiet"]

# How long nothing must have come before all has come, and the most to wait; seconds.
_PAUSE = 0.1
_LIMIT = 2.0


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Drop what Orbax 0.12 leaves behind when one of many arrays cannot be read.

    The other reads end later, in other threads, with an event loop that is closed;
    and the errors of those that failed too are never fetched. Each prints a traceback.
    Everything else is printed as ever.
    """
    with _silence:
        try:
            yield
        except BaseException:
            _silence.wait()
            # The unfetched errors are printed when they are collected.
            gc.collect()
            raise


class _Silence:
    """The filters, there as long as anybody reads; readers may be several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._hook: Callable[[Any], object] = sys.__unraisablehook__
        self._before = self._hook
        self._last = 0.0

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._before = sys.unraisablehook
                self._hook = sys.unraisablehook = self._filtered(self._before)
                logging.getLogger("asyncio").addFilter(self._unretrieved)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            logging.getLogger("asyncio").removeFilter(self._unretrieved)
            # Unless somebody has put another in front meanwhile.
            if sys.unraisablehook is self._hook:
                sys.unraisablehook = self._before

    def wait(self) -> None:
        """Wait until the reads that are still going on have ended."""
        self._last = time.monotonic()
        end = self._last + _LIMIT
        while time.monotonic() < min(self._last + _PAUSE, end):
            time.sleep(_PAUSE / 5)

    def _filtered(self, before: Callable[[Any], object]) -> Callable[[Any], object]:
        """Return a hook that passes on everything but the noise."""

        def hook(found: Any) -> None:
            error = found.exc_value
            if isinstance(error, RuntimeError) and "Event loop is closed" in str(error):
                self._last = time.monotonic()
            else:
                before(found)

        return hook

    def _unretrieved(self, record: logging.LogRecord) -> bool:
        return "exception was never retrieved" not in record.getMessage()


_silence = _Silence()
