"""Reads arrays out of a payload file and hands out none that was altered."""

import math
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from theseus_track.errors import BadInput, LedgerError, PayloadPending
from theseus_track.records import Leaf, join_tree
from theseus_track.records.narrow import widened
from theseus_track.records.strict_json import Json
from theseus_track.store.pack import DTYPES

__all__ = ["PENDING_SECONDS", "read_leaf", "read_tree"]

PENDING_SECONDS = 300.0
"""How long after the file last grew a missing array may still be on its way."""

_PAUSE = 0.05

# No array of ours is larger than this many bytes, or has more axes than numpy takes.
_MAX_BYTES = 1 << 40
_MAX_AXES = 32


def read_leaf(path: Path, leaf: Leaf, *, attempts: int = 3) -> np.ndarray:
    """Read one array of a payload file.

    Args:
        path: The payload file of the record's writer.
        leaf: Which bytes are which array.
        attempts: How often to look, 50 ms apart, for what may still arrive.

    Returns:
        The array, writable, in the machine's own byte order.

    Raises:
        PayloadPending: When its bytes are not all there, but may still arrive.
        LedgerError: When they are damaged, or the leaf makes no sense.
    """
    dtype = _check(path, leaf)
    for attempt in range(1, attempts + 1):
        data = _bytes(path, leaf)
        if len(data) == leaf.bytes and zlib.crc32(data) == leaf.crc:
            array = np.frombuffer(data, dtype).reshape(leaf.shape)
            return array.astype(dtype.newbyteorder("="))
        if attempt == attempts or not _may_arrive(path):
            break
        time.sleep(_PAUSE)
    raise _fault(path, leaf, len(data))


def read_tree(path: Path, tree: Json, leaves: Sequence[Leaf]) -> object:
    """Read a stored value: nested dicts, lists and tuples of numpy arrays.

    Args:
        path: The payload file of the record's writer.
        tree: The structure, as `split_tree` gave it.
        leaves: Its arrays.

    Raises:
        PayloadPending: When bytes are not all there, but may still arrive.
        LedgerError: When something is damaged.
    """
    arrays = [widened(read_leaf(path, leaf), leaf.origin) for leaf in leaves]
    try:
        return join_tree(tree, arrays)
    except (BadInput, ValueError, RecursionError) as error:
        raise LedgerError(f"A value in {path} is damaged: {error}") from error


def _check(path: Path, leaf: Leaf) -> np.dtype:
    dtype = DTYPES.get(leaf.dtype)
    if dtype is None:
        raise LedgerError(
            f"The leaf {leaf.leaf!r} in {path} has the dtype {leaf.dtype!r}; "
            f"a ledger holds {', '.join(DTYPES)}. A newer version may read it."
        )
    sound = (
        len(leaf.shape) <= _MAX_AXES
        and all(axis >= 0 for axis in leaf.shape)
        and math.prod(max(axis, 1) for axis in leaf.shape) <= _MAX_BYTES
        and math.prod(leaf.shape) * dtype.itemsize == leaf.bytes
        and leaf.offset >= 0
    )
    if not sound:
        raise LedgerError(
            f"The leaf {leaf.leaf!r} in {path} makes no sense: shape {leaf.shape}, "
            f"{leaf.bytes} bytes at {leaf.offset}."
        )
    return dtype


def _bytes(path: Path, leaf: Leaf) -> bytes:
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            # Compared before reading: a damaged length must not fill the memory.
            if leaf.offset + leaf.bytes > path.stat().st_size:
                return b""
            file.seek(leaf.offset)
            return file.read(leaf.bytes)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise LedgerError(f"{path} cannot be read: {error.strerror}.") from error


def _fault(path: Path, leaf: Leaf, got: int) -> LedgerError:
    what = "has changed" if got == leaf.bytes else "is cut short"
    where = f"The leaf {leaf.leaf!r} at byte {leaf.offset} of {path}"
    if _may_arrive(path):
        return PayloadPending(
            f"{where} {what}: damaged, or not all of it has arrived yet. Read it "
            f"again; after {PENDING_SECONDS / 60:.0f} minutes it counts as damaged."
        )
    return LedgerError(f"{where} {what}: it is damaged.")


def _may_arrive(path: Path) -> bool:
    # A network file system may show a line before the arrays that it names.
    try:
        age = time.time() - path.with_suffix(".jsonl").stat().st_mtime
    except OSError:
        return False
    return age < PENDING_SECONDS
