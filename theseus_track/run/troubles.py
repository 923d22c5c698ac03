"""What went wrong in the background: told once, and raised later under `strict`."""

import logging
import re
import threading

from theseus_track.errors import TheseusError

__all__ = ["Troubles"]

_log = logging.getLogger(__name__)


class Troubles:
    """Collects faults of the background threads; thread-safe."""

    def __init__(self, *, strict: bool) -> None:
        """Start empty.

        Args:
            strict: Keep the faults, so that the next call on the training thread
                raises them.
        """
        self._strict = strict
        # (kind, how it begins) -> its first text and how often it came.
        self._told: dict[tuple[str, str], tuple[str, int]] = {}
        self._pending: list[TheseusError] = []
        self._lock = threading.Lock()

    def report(self, kind: str, error: TheseusError) -> None:
        """Log a fault the first time, count it afterwards.

        Args:
            kind: What groups repetitions: faults of one kind whose message begins
                alike, but for the numbers in it, are told once.
            error: What happened, in one line.
        """
        with self._lock:
            key = (kind, _beginning(str(error)))
            text, count = self._told.get(key, (str(error), 0))
            self._told[key] = (text, count + 1)
            first = count == 0
            if self._strict:
                self._pending.append(error)
        if first:
            _log.warning("%s", error)

    def raise_pending(self) -> None:
        """Raise the oldest fault that was not raised yet; nothing if not strict."""
        with self._lock:
            error = self._pending.pop(0) if self._pending else None
        if error is not None:
            raise error

    def lines(self) -> list[str]:
        """List each fault once, with how often it came."""
        with self._lock:
            return [
                text + (f" ({count} times)" if count > 1 else "")
                for text, count in self._told.values()
            ]


def _beginning(text: str) -> str:
    # A message quotes the offending value, which differs from step to step.
    return re.sub(r"\d+", "0", text)[:80]
