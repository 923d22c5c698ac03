"""What became of the items of one sink, told at close."""

import dataclasses
from collections.abc import Mapping

from theseus_track.sinks.contract import Receipt

__all__ = ["SinkReport", "Tally"]

_MOST_REASONS = 10


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SinkReport:
    """The balance of one sink.

    Attributes:
        sink: The name of the sink.
        delivered: Items that can be read in the tracker.
        skipped: Items that the sink does not take by design.
        failed: Items that the sink refused, or that failed at every try.
        pending: Items that were not delivered; they are in the ledger.
        reasons: Why items failed, were skipped or wait -> how many times; at
            most ten different ones.
        closed: Whether the sink closed within the time given.
    """

    sink: str
    delivered: int
    skipped: int
    failed: int
    pending: int
    reasons: Mapping[str, int]
    closed: bool

    @property
    def complete(self) -> bool:
        """Whether nothing is missing in the tracker."""
        return self.closed and not self.pending and not self.failed

    def __str__(self) -> str:
        parts = [f"{self.delivered} delivered"]
        parts += [f"{self.skipped} skipped"] if self.skipped else []
        parts += [f"{self.pending} pending", f"{self.failed} failed"]
        parts += [] if self.closed else ["not closed"]
        reasons = "; ".join(
            f"{reason} (x{count})" if count > 1 else reason
            for reason, count in self.reasons.items()
        )
        return f"{self.sink}: {', '.join(parts)}" + (f" ({reasons})" if reasons else "")


class Tally:
    """Counts the receipts of one sink; used under its owner's lock."""

    def __init__(self, sink: str) -> None:
        """Start at zero."""
        self._sink = sink
        self._counts = {"written": 0, "skipped": 0, "failed": 0}
        self._reasons: dict[str, int] = {}

    def add(self, receipt: Receipt) -> None:
        """Count a final receipt, and its reason where something is missing."""
        self._counts[receipt.status] += 1
        if receipt.status != "written":
            self.note(receipt.reason)

    def note(self, reason: str) -> bool:
        """Count a reason; True when it is told for the first time."""
        new = reason not in self._reasons
        if new and len(self._reasons) >= _MOST_REASONS:
            return False
        self._reasons[reason] = self._reasons.get(reason, 0) + 1
        return new

    def report(
        self, *, pending: int, closed: bool, blocked: str, error: str
    ) -> SinkReport:
        """Draw the balance.

        Args:
            pending: Items that were not delivered.
            closed: Whether the sink closed.
            blocked: What the sink is still doing, or "".
            error: What the sink raised last, if that is why items wait, or "".
        """
        reasons = dict(self._reasons)
        for reason in (blocked, error):
            if reason:
                reasons.setdefault(reason, 1)
        return SinkReport(
            sink=self._sink,
            delivered=self._counts["written"],
            skipped=self._counts["skipped"],
            failed=self._counts["failed"],
            pending=pending,
            reasons=reasons,
            closed=closed,
        )
