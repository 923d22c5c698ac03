"""New entries to records, and their arrays to the bytes of the payload file."""

import dataclasses
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from theseus_track.errors import BadInput
from theseus_track.records import (
    Leaf,
    Part,
    ProbeRecord,
    Record,
    ResultRecord,
    StoredView,
    ValuesRecord,
    View,
    host_leaf,
    split_tree,
)
from theseus_track.records.strict_json import Json
from theseus_track.store.blobs import digest_of
from theseus_track.store.entries import Entry, NewPart, NewProbe, NewResult, NewValues

__all__ = ["ALIGNMENT", "DTYPES", "Packer"]

ALIGNMENT = 64
"""Every array begins at a multiple of this many bytes."""

DTYPES: Mapping[str, np.dtype[Any]] = {
    name: np.dtype(name).newbyteorder("<")
    for name in (
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
    )
}
"""The dtypes that a ledger holds, little-endian; a reader takes no other."""


class Packer:
    """Gives the arrays of one commit their place and collects their bytes.

    Args:
        start: The size of the payload file before the commit, in bytes.
    """

    def __init__(self, start: int) -> None:
        self._position = start
        self._chunks: list[bytes] = []

    def payload(self) -> bytes:
        """Return what is to be appended to the payload file."""
        return b"".join(self._chunks)

    def record(self, entry: Entry) -> Record:
        """Return the journal record of an entry; its arrays are packed.

        Raises:
            BadInput: When a value holds what a ledger cannot keep.
        """
        if isinstance(entry, NewValues):
            tree, leaves = self._tree(entry.name, entry.value, entry.origins)
            shared = _shared(ValuesRecord, entry)
            return ValuesRecord(tree=tree, leaves=leaves, **shared)
        if isinstance(entry, NewProbe):
            tree, leaves = self._tree(entry.name, entry.value, {})
            return ProbeRecord(
                name=entry.name, hash=entry.hash, tree=tree, leaves=leaves
            )
        if isinstance(entry, NewResult):
            shared = _shared(ResultRecord, entry)
            shared["parts"] = tuple(self._part(entry.name, p) for p in entry.parts)
            return ResultRecord(**shared)
        return entry

    def _tree(
        self, name: str, value: object, origins: Mapping[str, str]
    ) -> tuple[Any, tuple[Leaf, ...]]:
        tree, arrays = split_tree(value, host_leaf)
        return tree, tuple(
            self._leaf(name, leaf, array, origins.get(leaf)) for leaf, array in arrays
        )

    def _part(self, name: str, part: NewPart) -> Part:
        blobs = {suffix: digest_of(data) for suffix, data in part.blobs.items()}
        view = None if part.view is None else self._view(name, part.view)
        return Part(part=part.part, kind=part.kind, blobs=blobs, view=view)

    def _view(self, name: str, view: View) -> StoredView:
        arrays = tuple(
            self._leaf(name, role, np.asarray(array), None)
            for role, array in view.arrays.items()
        )
        ticks: dict[str, Json] = {
            axis: [str(text) for text in texts] for axis, texts in view.ticks.items()
        }
        return StoredView(
            kind=view.kind,
            arrays=arrays,
            labels=view.labels,
            ticks=ticks,
            scale=view.scale,
            caption=view.caption,
        )

    def _leaf(
        self, name: str, leaf: str, array: np.ndarray, origin: str | None
    ) -> Leaf:
        stored = _storable(name, leaf, array)
        if origin is None and stored.dtype != array.dtype.newbyteorder("<"):
            origin = array.dtype.name
        data = stored.tobytes(order="C")
        padding = -self._position % ALIGNMENT
        offset = self._position + padding
        self._chunks += [b"\0" * padding, data]
        self._position = offset + len(data)
        return Leaf(
            leaf=leaf,
            dtype=stored.dtype.name,
            shape=stored.shape,
            offset=offset,
            bytes=len(data),
            crc=zlib.crc32(data),
            origin=origin,
        )


def _shared(cls: type, entry: object) -> dict[str, Any]:
    # The fields of a record and of its entry have the same names.
    names = {field.name for field in dataclasses.fields(cls)} - {"tree", "leaves"}
    return {name: getattr(entry, name) for name in names}


def _storable(name: str, leaf: str, array: np.ndarray) -> np.ndarray:
    known = DTYPES.get(array.dtype.name)
    if known is not None:
        return array.astype(known, copy=False)
    if array.dtype.kind == "V" and array.dtype.type is not np.void:
        # ml_dtypes register bfloat16, float8 and the small integers as kind "V".
        integer = array.dtype.name.startswith(("int", "uint"))
        return array.astype(DTYPES["int8" if integer else "float32"])
    raise BadInput(
        f"{name!r} holds an array of dtype {array.dtype} at {leaf or 'the top'}; a "
        f"ledger keeps {', '.join(DTYPES)}. Return real parts or key data instead."
    )
