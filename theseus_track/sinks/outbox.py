"""What one sink has still to answer for, and the marks in the ledger that follow."""

import dataclasses
import logging
import threading
from collections.abc import Callable, Iterable

from theseus_track.errors import LedgerError
from theseus_track.records import Delivered, Item, MetricsItem, RecordRef
from theseus_track.sinks.contract import Receipt

__all__ = ["Outbox", "part_of"]

_log = logging.getLogger(__name__)

# From best to worst: a record with several parts is as delivered as its worst one.
_ORDER = ("written", "skipped", "failed")


@dataclasses.dataclass(slots=True)
class _Outstanding:
    """A record of which some parts have no receipt yet."""

    step: int
    parts: set[str]
    row: bool
    status: str = "written"
    reason: str = ""
    refused: bool = False


class Outbox:
    """The records that were given to one sink and have no answer yet; thread-safe.

    A record's mark is written when all of its parts have a receipt. Rows of metrics
    are many: one mark speaks for all rows of a writer up to a line, below which
    nothing is outstanding. It gives the answer that the first of them got, such as
    that a sink takes none; one that got another answer has a mark of its own.
    """

    def __init__(self, sink: str, mark: Callable[[Delivered], object]) -> None:
        """Start empty.

        Args:
            sink: What the marks call the sink.
            mark: Writes a mark; it may raise LedgerError.
        """
        self._sink = sink
        self._write = mark
        self._lock = threading.Lock()
        self._waiting: dict[RecordRef, _Outstanding] = {}
        # Writer -> what its rows have been answered, the last line of one that was,
        # and the last one marked.
        self._answers: dict[str, tuple[str, str]] = {}
        self._rows: dict[str, int] = {}
        self._marked: dict[str, int] = {}

    def expect(
        self, ref: RecordRef, step: int, parts: Iterable[str], *, row: bool
    ) -> None:
        """Note that a record is on its way.

        Args:
            ref: The record.
            step: Its training step.
            parts: The names of its parts; "" for a row of metrics.
            row: Whether a common mark will do, as for rows of metrics. One that has a
                mark which says that it failed needs another of its own.
        """
        with self._lock:
            self._waiting[ref] = _Outstanding(step, set(parts), row)

    def refuse(self, ref: RecordRef) -> None:
        """Note that there was no room for a record: it comes from the ledger later."""
        with self._lock:
            if ref in self._waiting:
                self._waiting[ref].refused = True

    def refused(self) -> list[RecordRef]:
        """Return the records for which there was no room, in step order."""
        with self._lock:
            found = [
                (w.step, ref.seq, ref) for ref, w in self._waiting.items() if w.refused
            ]
        return [ref for _, _, ref in sorted(found, key=lambda entry: entry[:2])]

    def settle(self, item: Item, receipt: Receipt) -> None:
        """Take the final receipt of one item; the mark follows when it is the last."""
        with self._lock:
            waiting = self._waiting.get(item.ref)
            if waiting is None:
                return
            waiting.parts.discard(part_of(item))
            if _ORDER.index(receipt.status) >= _ORDER.index(waiting.status):
                waiting.status = receipt.status
                waiting.reason = receipt.reason or waiting.reason
            if waiting.parts:
                return
            del self._waiting[item.ref]
            if waiting.row and self._is_common(item.ref, waiting):
                return
        self._mark(item.ref, waiting.status, waiting.reason)

    def mark_rows(self) -> None:
        """Write down up to which line the rows of metrics are delivered."""
        with self._lock:
            through = {
                writer: min(last, self._first_outstanding(writer, last + 1) - 1)
                for writer, last in self._rows.items()
            }
            new = {w: n for w, n in through.items() if n > self._marked.get(w, -1)}
            self._marked.update(new)
        for writer, seq in new.items():
            ref = RecordRef(writer=writer, seq=seq)
            self._mark(ref, *self._answers[writer], through=True)

    def _is_common(self, ref: RecordRef, row: _Outstanding) -> bool:
        """Take a row into the common mark, if it got the answer of those before."""
        if row.status == "failed":
            return False
        # Where a row is, as the reason of a written one tells, is no answer.
        answer = (row.status, "" if row.status == "written" else row.reason)
        if self._answers.setdefault(ref.writer, answer) != answer:
            return False
        self._rows[ref.writer] = max(ref.seq, self._rows.get(ref.writer, -1))
        return True

    def _first_outstanding(self, writer: str, default: int) -> int:
        rows = (
            ref.seq
            for ref, waiting in self._waiting.items()
            if ref.writer == writer and waiting.row
        )
        return min(rows, default=default)

    def _mark(
        self, ref: RecordRef, status: str, reason: str, *, through: bool = False
    ) -> None:
        mark = Delivered(
            sink=self._sink, record=ref, status=status, reason=reason, through=through
        )
        try:
            self._write(mark)
        except LedgerError as error:
            # The item is shown; without its mark it is delivered once more later. That
            # the ledger cannot be written is told where it loses something.
            _log.info("A delivery could not be noted: %s", error)


def part_of(item: Item) -> str:
    """Return the name of the part that an item is; "" for a row of metrics."""
    return "" if isinstance(item, MetricsItem) else item.part
