"""Reads a whole ledger and names everything in it that is damaged."""

import os
from collections.abc import Iterator
from pathlib import Path

from theseus_track.errors import LedgerError
from theseus_track.records import (
    Leaf,
    ProbeRecord,
    Record,
    RecordRef,
    ResultRecord,
    ValuesRecord,
)
from theseus_track.store.blobs import read_blob
from theseus_track.store.damage import Damage
from theseus_track.store.layout import blob_path, payload_path
from theseus_track.store.payload import read_leaf
from theseus_track.store.run import Run
from theseus_track.store.store import Store

__all__ = ["verify"]


def verify(what: str | os.PathLike[str] | Store | Run | None = None) -> list[Damage]:
    """Check every line, array and file by its checksum.

    What a process that died left unfinished is no damage: it was never
    acknowledged.

    Args:
        what: A run, a store, or the root of one (as for `Store`).

    Returns:
        What is damaged, file by file; empty when nothing is.

    Raises:
        NotFound: When the root does not exist.
    """
    if isinstance(what, Run):
        return list(_run(what.refresh()))
    store = what if isinstance(what, Store) else Store(what)
    return [damage for run in store.runs() for damage in _run(run)]


def _run(run: Run) -> Iterator[Damage]:
    yield from run.damaged
    seen: set[Path] = set()
    for ref, record in run.records():
        yield from _arrays(run, ref, record)
        yield from _blobs(run, record, seen)


def _arrays(run: Run, ref: RecordRef, record: Record) -> Iterator[Damage]:
    path = payload_path(run.dir, ref.writer)
    for leaf in _leaves(record):
        try:
            # One look: a file that lost its end may lack thousands of arrays.
            read_leaf(path, leaf, attempts=1)
        except LedgerError as error:
            end = leaf.offset + leaf.bytes
            where = f"bytes {leaf.offset} to {end}, of line {ref.seq + 1}"
            yield Damage(file=path, where=where, what=str(error))


def _leaves(record: Record) -> Iterator[Leaf]:
    if isinstance(record, ValuesRecord | ProbeRecord):
        yield from record.leaves
    if isinstance(record, ResultRecord):
        for part in record.parts:
            yield from part.view.arrays if part.view else ()


def _blobs(run: Run, record: Record, seen: set[Path]) -> Iterator[Damage]:
    parts = record.parts if isinstance(record, ResultRecord) else ()
    for part in parts:
        for suffix, digest in part.blobs.items():
            path = blob_path(run.dir, digest, suffix)
            if path in seen:
                continue
            seen.add(path)
            try:
                read_blob(path, digest)
            except LedgerError as error:
                yield Damage(file=path, where="the file", what=str(error))
