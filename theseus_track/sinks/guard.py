"""Calls a sink so that nothing that it raises gets out, again where that may help."""

import logging
from collections.abc import Callable

from theseus_track.sinks.retry import RetryPolicy

__all__ = ["Guard"]

_log = logging.getLogger(__name__)
_MOST_TOLD = 10


class Guard:
    """The edge between a sink and the rest of the package.

    Attributes:
        doing: The call that the sink has not returned from, or "".
        error: What it raised last, in one line, or "".
    """

    def __init__(
        self, name: str, retry: RetryPolicy, sleep: Callable[[float], bool]
    ) -> None:
        """Remember how to try again.

        Args:
            name: The sink's name, for messages.
            retry: How often and with which pauses.
            sleep: Waits so many seconds; False when there is no time for a try.
        """
        self._name = name
        self._retry = retry
        self._sleep = sleep
        self._told: set[str] = set()
        self.doing = ""
        self.error = ""

    def once(self, call: Callable[[], None], what: str) -> bool:
        """Call the sink; False when it raised."""
        self.doing = what
        try:
            call()
        except Exception as error:  # noqa: BLE001 (one sink must not stop the others)
            self._note(what, error)
            return False
        finally:
            self.doing = ""
        return True

    def repeatedly(self, call: Callable[[], None], what: str) -> bool:
        """Call the sink until it does not raise; False when out of tries or time."""
        for failures in range(1, self._retry.attempts + 1):
            if self.once(call, what):
                return True
            last = failures == self._retry.attempts
            if last or not self._sleep(self._retry.wait(failures)):
                return False
        return False

    def _note(self, what: str, error: Exception) -> None:
        self.error = f"{what} failed: {type(error).__name__}: {error}".rstrip(": ")
        _log.debug("%s: %s", self._name, self.error, exc_info=error)
        if self.error not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(self.error)
            _log.warning("%s: %s", self._name, self.error)
