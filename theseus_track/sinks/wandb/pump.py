"""A thread that looks again and again whether something that waits can be written."""

import logging
import threading
from collections.abc import Callable

__all__ = ["Pump"]

_log = logging.getLogger(__name__)
_SHORTEST = 0.02
_LONGEST = 0.5


class Pump:
    """Calls `work` as long as it says that something waits; else it sleeps.

    Nobody tells when the user ends a row, or when a figure was drawn, so it looks:
    soon at first, then twice a second.
    """

    def __init__(self, work: Callable[[], bool]) -> None:
        """Start nothing yet.

        Args:
            work: Writes what it can; True when it wants to be called again. When it
                raises, the next `wake` calls it again.
        """
        self._work = work
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Begin to call `work`."""
        if self._thread is None and not self._stop.is_set():
            self._thread = threading.Thread(
                target=self._run, name="theseus-wandb", daemon=True
            )
            self._thread.start()
        self._wake.set()

    def stop(self) -> None:
        """Call `work` no more; a call that is being made is not waited for."""
        self._stop.set()
        self._wake.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait()
            self._wake.clear()
            pause = _SHORTEST
            while not self._stop.wait(pause) and self._works():
                pause = min(pause * 1.5, _LONGEST)

    def _works(self) -> bool:
        try:
            return self._work()
        # One sink must not stop the others, nor print at exit: the next write or
        # flush meets the same fault and reports it.
        except Exception:  # noqa: BLE001
            _log.debug("W&B could not be written to", exc_info=True)
            return False
