"""When a call to a tracker that failed is tried again, and when no longer.

Two limits work together: an item is tried a few times with growing pauses, and a
sink whose items keep failing is left alone for a while, so that a dead tracker
costs neither time nor items.
"""

import dataclasses
import random
import time
from collections.abc import Callable

__all__ = ["Breaker", "RetryPolicy"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How patient a delivery is; all times in seconds.

    Attributes:
        attempts: Tries of one item before it counts as failed, >= 1.
        first_wait: The pause before the second try; it doubles from try to try.
        longest_wait: The longest such pause.
        pause_after: Items failing one after another that pause the sink, >= 1.
        pause: How long a sink is paused.
    """

    attempts: int = 4
    first_wait: float = 0.5
    longest_wait: float = 30.0
    pause_after: int = 3
    pause: float = 60.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.pause_after < 1:
            raise ValueError(f"{self!r}: attempts and pause_after must be >= 1.")
        if min(self.first_wait, self.longest_wait, self.pause) < 0:
            raise ValueError(f"{self!r}: times must be >= 0 seconds.")

    def wait(self, failures: int) -> float:
        """Return the pause after so many failures of one call, in seconds.

        Jitter takes up to half of it away: the ranks of a sweep that lost the
        same server do not come back together.
        """
        # The exponent is capped because 2.0 ** 1024 overflows.
        full = min(self.first_wait * 2.0 ** min(failures - 1, 60), self.longest_wait)
        return full * random.uniform(0.5, 1.0)


class Breaker:
    """Pauses a sink whose items fail one after another; used under its owner's lock."""

    def __init__(
        self, policy: RetryPolicy, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start closed: items pass."""
        self._policy = policy
        self._clock = clock
        self._failures = 0
        self._until: float | None = None

    @property
    def failing(self) -> bool:
        """Whether the last item failed."""
        return self._failures > 0

    def succeed(self) -> None:
        """Note that an item passed; the next pause needs a fresh row of failures."""
        self._failures = 0
        self._until = None

    def fail(self) -> bool:
        """Note that an item failed at every try; True when the sink is now paused.

        After a pause one item is let through; if that fails, the pause begins anew.
        """
        self._failures += 1
        if self._failures < self._policy.pause_after:
            return False
        self.trip()
        return True

    def trip(self) -> None:
        """Pause now: nothing can pass, whatever the item."""
        self._failures = max(self._failures, self._policy.pause_after)
        self._until = self._clock() + self._policy.pause

    def end_pause(self) -> None:
        """Let one item through now; for a flush or a close, which cannot wait."""
        self._until = None

    def remaining(self) -> float:
        """Return how long the sink stays paused, in seconds; 0 when items pass."""
        return 0.0 if self._until is None else max(0.0, self._until - self._clock())
