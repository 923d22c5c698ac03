"""Reads back from the ledger what memory could not hold until its turn came."""

from pathlib import Path

from theseus_track.errors import LedgerError
from theseus_track.records import (
    FigureItem,
    Item,
    JsonItem,
    MetricsItem,
    MetricsRecord,
    Part,
    Record,
    RecordRef,
    ResultRecord,
    ValuesRecord,
    loads,
)
from theseus_track.run.caption import caption_of
from theseus_track.store import Run
from theseus_track.store.blobs import read_blob
from theseus_track.store.layout import blob_path, payload_path
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
        record = self._record(ref)
        if isinstance(record, MetricsRecord):
            numbers = {name: float(str(v)) for name, v in record.metrics.items()}
            return [
                MetricsItem(
                    ref=ref,
                    step=record.step,
                    wall_time=record.wall_time,
                    metrics=numbers,
                )
            ]
        if isinstance(record, ResultRecord):
            return [self._item(ref, record, part) for part in record.parts]
        raise LedgerError(f"Line {ref.seq} of {ref.writer} is nothing to deliver.")

    def _record(self, ref: RecordRef) -> Record:
        if ref not in self._records:
            self._run = (
                Run(self._directory) if self._run is None else self._run.refresh()
            )
            self._records = dict(self._run.records())
        if ref not in self._records:
            raise LedgerError(f"Line {ref.seq} of {ref.writer} cannot be read.")
        return self._records[ref]

    def _item(self, ref: RecordRef, record: ResultRecord, part: Part) -> Item:
        blobs = {
            suffix: read_blob(blob_path(self._directory, digest, suffix), digest)
            for suffix, digest in part.blobs.items()
        }
        caption = caption_of(record.name, record.key, record.paths, record.step)
        if part.kind == "json":
            return JsonItem(
                ref=ref,
                name=record.name,
                part=part.part,
                step=record.step,
                wall_time=record.wall_time,
                value=loads(blobs["json"]),
                caption=caption,
            )
        return FigureItem(
            ref=ref,
            name=record.name,
            part=part.part,
            step=record.step,
            wall_time=record.wall_time,
            png=blobs["png"],
            pdf=blobs["pdf"],
            caption=caption,
        )
