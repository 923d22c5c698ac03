"""Marks what a sync delivered, in a journal of its own."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from theseus_track.records import (
    Delivered,
    MetricsRecord,
    RecordRef,
    ResultRecord,
    RunInfo,
)
from theseus_track.store import LedgerWriter
from theseus_track.store.deliveries import Deliveries
from theseus_track.store.run_state import DELIVERS

__all__ = ["Due", "Marks", "Shown"]

Shown: TypeAlias = ResultRecord | MetricsRecord
"""What trackers show of a ledger."""

Due: TypeAlias = Sequence[tuple[RecordRef, Shown]]
"""What is to be delivered, by step."""


class Marks:
    """Writes marks into a journal of its own, which is made for the first one."""

    def __init__(self, root: Path, info: RunInfo) -> None:
        self._root = root
        self._info = info
        # Marks come from the sink's thread and from the one that hands over.
        self._lock = threading.Lock()
        self._writer: LedgerWriter | None = None

    def of(self, answers: Deliveries, due: Due) -> Callable[[Delivered], None]:
        """Return what writes a mark, unless it says what the last one said."""
        known = {
            ref: (answer.status, answer.reason)
            for ref, record in due
            if (answer := answers.answer(ref, record)) is not None
        }

        def write(mark: Delivered) -> None:
            if mark.through or known.get(mark.record) != (mark.status, mark.reason):
                self._append(mark)

        return write

    def close(self) -> None:
        """End the journal, if there is one."""
        with self._lock:
            if self._writer is not None:
                self._writer.close()

    def _append(self, mark: Delivered) -> None:
        with self._lock:
            if self._writer is None:
                self._writer = LedgerWriter.create(
                    self._root, self._info, purpose=DELIVERS
                )
            self._writer.append(mark)
