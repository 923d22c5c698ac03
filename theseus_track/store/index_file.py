"""Keeps indexes of runs between processes, where `$THESEUS_INDEX` says."""

import contextlib
import dataclasses
import hashlib
import os
import secrets
import zlib
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from theseus_track.errors import BadInput
from theseus_track.records import dumps, loads, record_from_json, record_to_json
from theseus_track.records.strict_json import Json
from theseus_track.store.journal_index import JournalIndex

__all__ = ["INDEX_VARIABLE", "IndexFile"]

INDEX_VARIABLE = "THESEUS_INDEX"
"""Names a directory, on a local disk, that indexes may be kept in; deleted at will."""

_MAGIC = b"theseus-index 1 "
# Bytes of the first line, and of the last one that the index knows, to compare.
_EDGE = 256


@dataclasses.dataclass(frozen=True, slots=True)
class IndexFile:
    """A directory of indexes: one file for each run. Nothing in it is needed.

    A file is used when it is whole and its journals begin as they did: what is
    damaged, older or of another version is passed over and written anew.
    """

    directory: Path

    @classmethod
    def from_environment(cls) -> "IndexFile | None":
        """Return the one that `$THESEUS_INDEX` names, or None."""
        named = os.environ.get(INDEX_VARIABLE)
        return cls(Path(named).absolute()) if named else None

    def load(self, run: Path) -> dict[str, JournalIndex]:
        """Return what was kept of a run's journals, by their file's name."""
        try:
            data = self._path(run).read_bytes()
            return {index.path.name: index for index in _unpacked(run, data)}
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            return {}

    def save(self, run: Path, journals: Mapping[str, JournalIndex]) -> None:
        """Keep an index; a directory that cannot be written keeps none."""
        path = self._path(run)
        partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        with contextlib.suppress(OSError):
            self.directory.mkdir(parents=True, exist_ok=True)
            try:
                partial.write_bytes(_packed(journals))
                partial.replace(path)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    partial.unlink()

    def _path(self, run: Path) -> Path:
        name = hashlib.sha256(os.fsencode(run)).hexdigest()[:32]
        return self.directory / f"{name}.index"


def _packed(journals: Mapping[str, JournalIndex]) -> bytes:
    heads: list[Json] = []
    chunks: list[bytes] = []
    for name, journal in journals.items():
        columns: list[array[Any]] = [*journal.columns.values()]
        columns += [column for pair in journal.metrics.values() for column in pair]
        chunks += [column.tobytes() for column in columns]
        heads.append({"file": name, **_head(journal)})
    head = dumps(heads).encode("ascii")
    body = b"".join((b"%d\n" % len(head), head, *chunks))
    return _MAGIC + b"%08x\n" % zlib.crc32(body) + body


def _head(journal: JournalIndex) -> dict[str, Json]:
    told = (journal.writer, journal.resumed, journal.last)
    return {
        "offset": journal.offset,
        "edges": _edges(journal),
        "size": journal.size,
        "modified": journal.path.stat().st_mtime_ns,
        "rows": len(journal.columns["kind"]),
        "names": [*journal.names],
        "metrics": {name: len(rows) for name, (rows, _) in journal.metrics.items()},
        "count": journal.count,
        "damaged": journal.damaged,
        "next": journal.next_seq,
        "records": [None if r is None else record_to_json(r) for r in told],
    }


def _unpacked(run: Path, data: bytes) -> list[JournalIndex]:
    first, _, body = data.partition(b"\n")
    if first != _MAGIC + b"%08x" % zlib.crc32(body):
        raise BadInput("The index is damaged.")
    length, _, rest = body.partition(b"\n")
    position = int(length)
    # The checksum says that it is what `_packed` wrote.
    heads: Any = loads(rest[:position])
    found: list[JournalIndex] = []
    for head in heads:
        journal = JournalIndex(run / Path(head["file"]).name)
        position = _fill(journal, head, rest, position)
        if _still(journal, head):
            found.append(journal)
    return found


def _fill(
    journal: JournalIndex, head: Mapping[str, Any], data: bytes, position: int
) -> int:
    columns: list[tuple[array[Any], int]] = [
        (column, head["rows"]) for column in journal.columns.values()
    ]
    for name, rows in head["metrics"].items():
        pair = journal.metrics[name] = (array("I"), array("d"))
        columns += [(column, rows) for column in pair]
    for column, rows in columns:
        end = position + rows * column.itemsize
        column.frombytes(data[position:end])
        position = end
    records: Any = [
        None if known is None else record_from_json(known) for known in head["records"]
    ]
    journal.writer, journal.resumed, journal.last = records
    journal.restore(
        names=head["names"],
        offset=head["offset"],
        size=head["size"],
        count=head["count"],
        damaged=head["damaged"],
        next_seq=head["next"],
    )
    return position


def _still(journal: JournalIndex, head: Mapping[str, Any]) -> bool:
    now = journal.path.stat()
    grown = now.st_size > head["size"]
    same = now.st_size == head["size"] and now.st_mtime_ns == head["modified"]
    return (grown or same) and bool(head["edges"] == _edges(journal))


def _edges(journal: JournalIndex) -> int:
    with journal.path.open("rb") as file:
        first = file.read(_EDGE)
        file.seek(max(0, journal.offset - _EDGE))
        return zlib.crc32(file.read(min(_EDGE, journal.offset)), zlib.crc32(first))
