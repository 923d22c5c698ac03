"""Views and results as JSON that a browser turns into typed arrays."""

import base64

import numpy as np

from theseus_track.errors import BadInput
from theseus_track.records import View
from theseus_track.records.strict_json import Json
from theseus_track.store import Result, Run

__all__ = ["MAX_BYTES", "described", "result_json", "summary", "view_json"]

MAX_BYTES = 64 << 20
"""Arrays of one result that are larger than this, in bytes, are not sent."""


def summary(key: str, run: Run) -> dict[str, Json]:
    """Return a run as the table of runs shows it."""
    last: dict[str, Json] = {}
    for row in run.metrics():
        last.update(row.metrics)
    known = run.to_json()
    # Where the files are is nobody's business who only looks at values.
    del known["dir"]
    return {"key": key, **known, "config": {**run.info.config}, "last": last}


def described(result: Result) -> dict[str, Json]:
    """Return what a result is, without its arrays."""
    known = result.to_json()
    del known["files"]
    ref = result.ref
    return {"writer": ref.writer, "seq": ref.seq, **known}


def result_json(result: Result) -> dict[str, Json]:
    """Return a result with its Views, its tables and the hashes of its files.

    Raises:
        BadInput: When its Views are larger than `MAX_BYTES`.
        LedgerError: When something is damaged.
    """
    leaves = [leaf for p in result.parts if p.view for leaf in p.view.arrays]
    size = sum(leaf.bytes for leaf in leaves)
    if size > MAX_BYTES:
        raise BadInput(
            f"The arrays are {size} bytes; at most {MAX_BYTES} are sent. "
            "Read them with theseus_track.store."
        )
    files: list[Json] = [
        {"part": part.part, "suffix": suffix, "digest": digest}
        for part in result.parts
        for suffix, digest in part.blobs.items()
    ]
    return {
        **described(result),
        "views": {part: view_json(view) for part, view in result.views.items()},
        "tables": {**result.tables},
        "blobs": files,
    }


def view_json(view: View) -> dict[str, Json]:
    """Return a View; each array has its dtype, shape and bytes in base 64."""
    return {
        "kind": view.kind,
        "arrays": {role: _array(array) for role, array in view.arrays.items()},
        "labels": {**view.labels},
        "ticks": {axis: [*texts] for axis, texts in view.ticks.items()},
        "scale": {**view.scale},
        "caption": view.caption,
    }


def _array(array: np.ndarray) -> dict[str, Json]:
    # A browser has no 16-bit floats, and no booleans or 64-bit integers in arrays.
    if array.dtype.kind != "f" or array.dtype.itemsize < 4:
        small = array.dtype.kind in "fb" or array.dtype.itemsize < 4
        array = array.astype(np.float32 if small else np.float64)
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {
        "dtype": array.dtype.name,
        "shape": [*array.shape],
        "data": base64.b64encode(little.tobytes()).decode("ascii"),
    }
