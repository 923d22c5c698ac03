"""What went wrong in the background: told once, and raised later under `strict`."""

import logging
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
        self._told: dict[tuple[str, str], int] = {}
        self._pending: list[TheseusError] = []
        self._lock = threading.Lock()

    def report(self, kind: str, error: TheseusError) -> None:
        """Log a fault the first time, count it afterwards.

        Args:
            kind: What groups repetitions: faults of one kind with one message are
                told once.
            error: What happened, in one line.
        """
        with self._lock:
            key = (kind, str(error))
            first = key not in self._told
            self._told[key] = self._told.get(key, 0) + 1
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
                for (_, text), count in self._told.items()
            ]
