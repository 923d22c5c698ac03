"""Reading checkpoints that are one file: Flax' msgpack, and safetensors."""

import functools
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import flax.serialization
import jax
import jax.numpy as jnp
import numpy as np

from theseus_track.checkpoints.leaves import (
    Leaf,
    Name,
    Placed,
    Wanted,
    name_of,
    place,
)
from theseus_track.errors import CheckpointError

__all__ = ["MsgpackReader", "SafetensorsReader"]

_SAFE_DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
}
# The header of a model of 10^5 arrays is a few MiB.
_HEADER_LIMIT = 100 << 20


class MsgpackReader:
    """Reads what `flax.training.checkpoints` wrote; the format allows no less than all.

    Also what Orbax 0.5 wrote so, as a file `checkpoint` in a directory, if there is
    one. In it, texts stand for the arrays that are elsewhere.
    """

    def __init__(self, path: Path) -> None:
        self._path = path / "checkpoint" if path.is_dir() else path

    def leaves(self) -> dict[Name, Leaf]:
        """Return what is stored; reads the whole file."""
        return {
            name: Leaf(shape=tuple(array.shape), dtype=str(array.dtype))
            for name, array in self._arrays.items()
        }

    def read(self, wanted: Mapping[Name, Wanted]) -> Placed:
        """Return these arrays."""
        return {
            name: place(self._arrays[name].__getitem__, how)
            for name, how in wanted.items()
        }

    @functools.cached_property
    def _arrays(self) -> dict[Name, np.ndarray]:
        if not self._path.exists() and self._path.name == "checkpoint":
            return {}
        try:
            tree = flax.serialization.msgpack_restore(self._path.read_bytes())
        except Exception as error:  # msgpack raises many, of several libraries
            raise CheckpointError(
                f"{self._path} is no whole msgpack file: {error}"
            ) from error
        leaves = jax.tree_util.tree_leaves_with_path(tree)
        return {
            name_of(path): np.asarray(leaf)
            for path, leaf in leaves
            if isinstance(leaf, np.ndarray | np.generic | int | float | complex)
        }


class SafetensorsReader:
    """Reads safetensors: a header in JSON, then the arrays one after the other."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def leaves(self) -> dict[Name, Leaf]:
        """Return what is stored; reads the header alone."""
        return {
            name: Leaf(shape=shape, dtype=str(dtype))
            for name, (shape, dtype, _) in self._entries.items()
        }

    def read(self, wanted: Mapping[Name, Wanted]) -> Placed:
        """Return these arrays."""
        placed: Placed = {}
        for name, how in wanted.items():
            shape, dtype, offset = self._entries[name]
            stored: np.ndarray = np.empty(shape, dtype)
            if stored.size:  # Nothing cannot be mapped.
                stored = np.memmap(self._path, dtype, "r", offset, shape)
            placed[name] = place(stored.__getitem__, how)
        return placed

    @functools.cached_property
    def _entries(self) -> dict[Name, tuple[tuple[int, ...], np.dtype[Any], int]]:
        """By name, shape, dtype and the place in the file, in bytes."""
        try:
            return dict(self._parsed())
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{self._path} is no whole safetensors file: {error}"
            ) from error

    def _parsed(
        self,
    ) -> Iterator[tuple[Name, tuple[tuple[int, ...], np.dtype[Any], int]]]:
        size = self._path.stat().st_size
        with self._path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 0 < length <= min(_HEADER_LIMIT, size - 8):
                raise ValueError(f"a header of {length} bytes in {size} bytes")
            header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        # PyTorch writes dots, and a Flax tree may hold names that contain some.
        mark = "/" if any("/" in key for key in header) else "."
        for key, entry in header.items():
            dtype = np.dtype(getattr(jnp, _SAFE_DTYPES[entry["dtype"]]))
            shape = tuple(entry["shape"])
            begin, end = entry["data_offsets"]
            if end - begin != math.prod(shape) * dtype.itemsize:
                raise ValueError(f"{key} has {end - begin} bytes for {shape}")
            if 8 + length + end > size:
                raise ValueError(f"{key} ends behind the end of the file")
            yield tuple(key.split(mark)), (shape, dtype, 8 + length + begin)
