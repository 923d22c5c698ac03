"""Reads back from the ledger what memory could not hold until its turn came."""

from pathlib import Path

from theseus_track.errors import LedgerError
from theseus_track.records import Item, Record, RecordRef, ValuesRecord
from theseus_track.sinks.items import items_of
from theseus_track.store import Run
from theseus_track.store.layout import payload_path
from theseus_track.store.payload import read_tree

__all__ = ["Readback"]


class Readback:
    """Values and deliverable items of one run by their place in the ledger."""

    def __init__(self, directory: Path) -> None:
        """Remember the run's directory; nothing is read yet."""
        self._directory = directory
        self._run: Run | None = None
        self._records: dict[RecordRef, Record] = {}

    def value(self, ref: RecordRef) -> object:
        """Read a value as `plot` gets it; LedgerError when it cannot be read."""
        record = self._record(ref)
        if not isinstance(record, ValuesRecord):
            raise LedgerError(f"Line {ref.seq} of {ref.writer} holds no values.")
        path = payload_path(self._directory, ref.writer)
        return read_tree(path, record.tree, record.leaves)

    def items(self, ref: RecordRef) -> list[Item]:
        """Read what a sink is given of one record; LedgerError when it cannot be."""
        return items_of(self._directory, ref, self._record(ref))

    def _record(self, ref: RecordRef) -> Record:
        if ref not in self._records:
            self._run = (
                Run(self._directory) if self._run is None else self._run.refresh()
            )
            self._records = dict(self._run.records())
        if ref not in self._records:
            raise LedgerError(f"Line {ref.seq} of {ref.writer} cannot be read.")
        return self._records[ref]
