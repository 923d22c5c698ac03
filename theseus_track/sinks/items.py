"""What a sink is given of one record, read back from the ledger."""

from pathlib import Path
from typing import Any

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
    loads,
)
from theseus_track.records.caption import caption_of
from theseus_track.store.blobs import read_blob
from theseus_track.store.layout import blob_path

__all__ = ["items_of"]


def items_of(directory: Path, ref: RecordRef, record: Record) -> list[Item]:
    """Read the items of one record: one for each part of a result, one for a row.

    Args:
        directory: The directory of the run.
        ref: Where the record is.
        record: The record.

    Raises:
        LedgerError: When a file is missing or damaged, or nothing in the record is
            to be shown.
    """
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
        return [_item(directory, ref, record, part) for part in record.parts]
    raise LedgerError(f"Line {ref.seq} of {ref.writer} is nothing to deliver.")


def _item(directory: Path, ref: RecordRef, record: ResultRecord, part: Part) -> Item:
    blobs = {
        suffix: read_blob(blob_path(directory, digest, suffix), digest)
        for suffix, digest in part.blobs.items()
    }
    common: dict[str, Any] = {
        "ref": ref,
        "name": record.name,
        "part": part.part,
        "step": record.step,
        "wall_time": record.wall_time,
        "caption": caption_of(
            record.name,
            record.key,
            record.paths,
            record.step,
            run=directory.name,
            shown=part.view.caption if part.view else "",
        ),
    }
    if part.kind == "json":
        return JsonItem(value=loads(blobs["json"]), **common)
    return FigureItem(png=blobs["png"], pdf=blobs["pdf"], **common)
