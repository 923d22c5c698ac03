"""The batches that a run stored once, so that a replay looks at the same ones."""

import dataclasses
import functools
from collections.abc import Iterable
from pathlib import Path

from theseus_track.records import ProbeRecord, Record, RecordRef
from theseus_track.store.layout import payload_path
from theseus_track.store.payload import read_tree

__all__ = ["Probe", "probes_of"]


@dataclasses.dataclass(frozen=True)
class Probe:
    """One stored batch.

    Attributes:
        name: What the run called it, such as "val".
        hash: Of its structure, shapes, dtypes and bytes; 16 hex digits.
    """

    name: str
    hash: str
    _path: Path
    _record: ProbeRecord

    @functools.cached_property
    def batch(self) -> object:
        """The batch: numpy arrays in nested dicts, lists and tuples.

        LedgerError when it is damaged.
        """
        return read_tree(self._path, self._record.tree, self._record.leaves)


def probes_of(
    directory: Path, records: Iterable[tuple[RecordRef, Record]]
) -> dict[str, Probe]:
    """Return the batches of a run by name, of each name the one stored last."""
    return {
        record.name: Probe(
            record.name, record.hash, payload_path(directory, ref.writer), record
        )
        for ref, record in records
        if isinstance(record, ProbeRecord)
    }
