"""What one sink has answered for the records of a run, as the ledger tells."""

from collections.abc import Iterable

from theseus_track.records import Delivered, MetricsRecord, Record, RecordRef

__all__ = ["Deliveries"]


class Deliveries:
    """The marks of one sink: which records it shows, and which it refused."""

    def __init__(self, records: Iterable[tuple[RecordRef, Record]], sink: str) -> None:
        """Collect the marks.

        Args:
            records: Those of the run, in the order of writing.
            sink: What the marks call the sink.
        """
        self._own: dict[RecordRef, Delivered] = {}
        self._through: dict[str, Delivered] = {}
        for _, record in records:
            if not isinstance(record, Delivered) or record.sink != sink:
                continue
            if not record.through:
                self._own[record.record] = record
            elif record.record.seq > self._last_line(record.record.writer):
                self._through[record.record.writer] = record

    def answer(self, ref: RecordRef, record: Record) -> Delivered | None:
        """Return the mark that holds for a record, or None while there is none.

        A row of metrics has one in common with the rows before it, unless it has one
        of its own, because the answer was another.
        """
        own = self._own.get(ref)
        if own is None and isinstance(record, MetricsRecord):
            return self._through.get(ref.writer) if self._covered(ref) else None
        return own

    def settled(self, ref: RecordRef, record: Record) -> bool:
        """Say whether a record is shown or skipped by design, so that it can rest."""
        found = self.answer(ref, record)
        return found is not None and found.status in ("written", "skipped")

    def _covered(self, ref: RecordRef) -> bool:
        return ref.seq <= self._last_line(ref.writer)

    def _last_line(self, writer: str) -> int:
        mark = self._through.get(writer)
        return -1 if mark is None else mark.record.seq
