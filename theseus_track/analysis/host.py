"""Values on the host: numpy arrays as `plot` and the ledger get them."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from theseus_track.analysis.values import Entry, Values
from theseus_track.records import join_tree, loads
from theseus_track.records.narrow import NARROW, narrowed, widened

if TYPE_CHECKING:
    from theseus_track.analysis.base import AnalysisBase

__all__ = ["HostValue", "to_host"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class HostValue:
    """What one analysis returned, on the host.

    Attributes:
        entry: What was known at trace time.
        value: Nested dicts, lists and tuples of numpy arrays; None with a fault.
        stored: The same as the ledger keeps it: of other dtypes where the analysis
            has a STORE_DTYPE. `value` is rounded in the same way, so that what is
            drawn now and what is drawn from the ledger are equal.
        origins: Path within the value -> dtype on the device, where another is stored.
        valid: Path of a call in a branch -> whether that was taken; in loops a list,
            one for each iteration.
    """

    entry: Entry
    value: Any
    stored: Any
    origins: Mapping[str, str]
    valid: Mapping[str, Any]

    @property
    def analysis(self) -> "AnalysisBase":
        """The analysis instance."""
        return self.entry.analysis

    @property
    def reached(self) -> bool:
        """Whether there is a value and no branch that holds a call was skipped."""
        return self.entry.fault is None and all(map(np.all, self.valid.values()))


def to_host(values: Values) -> list[HostValue]:
    """Copy values to the host; waits for the computation that makes them.

    Args:
        values: Arrays that are fully addressable or fully replicated.

    Returns:
        One for each analysis, in order, those with a fault included. Floats that
        numpy and its readers do not know (bfloat16, float8, int4) are upcast.
    """
    return [_entry_to_host(values, index) for index in range(len(values.entries))]


def _entry_to_host(values: Values, index: int) -> HostValue:
    entry = values.entries[index]
    if entry.fault is not None:
        return HostValue(entry=entry, value=None, stored=None, origins={}, valid={})
    leaves, flags = jax.device_get(values.arrays(index))
    arrays = [np.asarray(leaf) for leaf in leaves]
    kept = [_upcast(array) for array in arrays]
    if entry.analysis.STORE_DTYPE == NARROW:
        kept = [narrowed(array) for array in kept]
    pairs = zip(entry.leaves, arrays, kept, strict=True)
    origins = {p: str(a.dtype) for p, a, b in pairs if a.dtype != b.dtype}
    used = [widened(b, origins.get(p)) for p, b in zip(entry.leaves, kept, strict=True)]
    structure = loads(entry.structure)
    return HostValue(
        entry=entry,
        value=join_tree(structure, used),
        stored=join_tree(structure, kept),
        origins=origins,
        valid={
            path: np.asarray(flag).tolist()
            for path, flag in zip(entry.conditional, flags, strict=True)
        },
    )


def _upcast(array: np.ndarray) -> np.ndarray:
    """Return an array of a dtype that plain numpy knows."""
    if array.dtype.isbuiltin == 1:
        return array
    # ml_dtypes' small integers (int4, uint4, int2) and floats register with numpy.
    name = array.dtype.name
    target = np.int8 if name.startswith("int") else np.float32
    return array.astype(np.uint8 if name.startswith("uint") else target)
