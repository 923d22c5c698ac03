"""How two results differ, cell by cell, and whether they may be compared."""

import dataclasses

import numpy as np

from theseus_track.errors import BadInput
from theseus_track.records import host_leaf, join_tree, split_tree
from theseus_track.store.result import Result

__all__ = ["Comparison", "compare"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How the values of two results differ.

    Attributes:
        difference: First minus second, cell by cell, in the structure of the
            value: float64, or int64 for integers. Equal cells are 0, equal
            non-finite ones too.
        max_abs: The largest absolute difference; NaN where only one is NaN.
        same_probe: Whether the same batch was seen; None when unknown.
        same_measure: Whether the same code computed them; None when unknown.
        same_program: Whether the traced programs were the same, so that equal
            inputs give equal bits; None when unknown.
        same_paths: Whether the same calls were analysed.
        same_step: Whether the steps are the same.
    """

    difference: object
    max_abs: float
    same_probe: bool | None
    same_measure: bool | None
    same_program: bool | None
    same_paths: bool
    same_step: bool


def compare(a: Result, b: Result) -> Comparison:
    """Return how the values of two results differ.

    Args:
        a: A result with values.
        b: Another one, of the same structure and shapes.

    Raises:
        BadInput: When one has no values, or structure or a shape differ.
        LedgerError: When the values are damaged.
    """
    first, second = a.values_record, b.values_record
    if first is None or second is None:
        missing = a if first is None else b
        raise BadInput(f"{missing} has no values; a result to compare needs them.")
    tree, left = split_tree(a.values, host_leaf)
    other, right = split_tree(b.values, host_leaf)
    if tree != other:
        raise BadInput(
            f"The values of {a} and {b} have different structures: "
            f"{[leaf for leaf, _ in left]} and {[leaf for leaf, _ in right]}."
        )
    pairs = zip(left, right, strict=True)
    cells = [_difference(leaf, x, y) for (leaf, x), (_, y) in pairs]
    return Comparison(
        difference=join_tree(tree, cells),
        max_abs=float(max((np.max(np.abs(c)) for c in cells if c.size), default=0)),
        same_probe=_same(first.probe, second.probe),
        same_measure=_same(first.measure, second.measure),
        same_program=_same(first.program, second.program),
        same_paths=a.paths == b.paths,
        same_step=a.step == b.step,
    )


def _difference(leaf: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.shape != y.shape:
        raise BadInput(
            f"The shapes of {leaf or 'the value'} differ: {x.shape} and {y.shape}. "
            "Compare results of one select and analyze."
        )
    integers = x.dtype.kind in "biu" and y.dtype.kind in "biu"
    wide = integers and np.uint64 not in (x.dtype, y.dtype)
    dtype = np.int64 if wide else np.float64
    x, y = x.astype(dtype), y.astype(dtype)
    # What is not equal to itself is NaN; `isnan` takes no integers.
    same = (x == y) | ((x != x) & (y != y))
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.where(same, dtype(0), x - y))


def _same(a: str | None, b: str | None) -> bool | None:
    return None if a is None or b is None else a == b
