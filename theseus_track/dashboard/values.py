"""Runs, Views and results as JSON that a browser turns into typed arrays."""

import base64
from collections.abc import Mapping

import numpy as np

from theseus_track.errors import BadInput
from theseus_track.records import View, host_leaf, split_tree
from theseus_track.records.codec import encode
from theseus_track.records.strict_json import Json
from theseus_track.store import Result, RunIndex

__all__ = [
    "MAX_BYTES",
    "array_json",
    "described",
    "fallback",
    "mismatches",
    "provenance",
    "result_json",
    "run_json",
    "sent_bytes",
    "shown_json",
    "steps_json",
    "summary",
    "view_json",
]

MAX_BYTES = 64 << 20
"""Arrays of one answer that are larger than this, in bytes, are not sent."""


def summary(key: str, run: RunIndex, root: int = 0) -> dict[str, Json]:
    """Return a run as the table of runs shows it.

    Args:
        key: The key of the run.
        run: The run; before it is complete, the end of its journal tells.
        root: The number of the root that it is in.
    """
    seen, info = run.glimpse(), run.info
    totals = seen.totals()
    # Where the files are is nobody's business who only looks at values.
    return {
        "key": key,
        "root": root,
        "project": info.project,
        "name": info.name,
        "id": info.id,
        "group": info.group,
        "tags": [*info.tags],
        "state": seen.state,
        "created": info.created,
        "config": {**info.config},
        "last": {**totals.last},
        "last_step": totals.last_step,
        "analyses": [*totals.counts],
        "counts": {**totals.counts},
        "metrics": [*seen.metrics],
        "step_count": totals.steps,
        "damaged": seen.damaged,
        "indexed": run.complete,
    }


def run_json(key: str, run: RunIndex, root: int = 0) -> dict[str, Json]:
    """Return a run with what `run.json` tells of it, but where its files are."""
    info = encode(run.info)
    for private in ("checkpoints", "recipe", "sinks"):
        info.pop(private, None)
    writers: list[Json] = [
        {"host": w.host, "started": w.started, "purpose": w.purpose, "from": w.package}
        for w in run.writers
    ]
    return {**summary(key, run, root), "info": info, "writers": writers}


def steps_json(run: RunIndex) -> dict[str, Json]:
    """Return the steps of each analysis, ascending, with times and tokens."""
    found: dict[str, dict[str, list[Json]]] = {}
    for finding in run.findings():
        record = finding.values or finding.result
        if finding.superseded or record is None:
            continue
        columns = found.setdefault(
            finding.name, {"step": [], "wall_time": [], "tokens": [], "errors": []}
        )
        columns["step"].append(finding.step)
        columns["wall_time"].append(record.wall_time)
        columns["tokens"].append(finding.values.tokens if finding.values else None)
        if finding.result is not None and finding.result.error is not None:
            columns["errors"].append(finding.step)
    return {
        name: {"steps": columns.pop("step"), **columns}
        for name, columns in found.items()
    }


def described(result: Result) -> dict[str, Json]:
    """Return what a result is, without its arrays."""
    known = result.to_json()
    del known["files"]
    ref = result.ref
    record = result.values_record
    return {
        "writer": ref.writer,
        "seq": ref.seq,
        **known,
        "tokens": record.tokens if record else None,
        "program": record.program if record else None,
    }


def provenance(result: Result, run: RunIndex) -> dict[str, Json]:
    """Return how a result came about and what it costs to keep."""
    record, source = result.values_record, result.source
    writer = next((w for w in run.writers if w.writer == result.ref.writer), None)
    return {
        "source": source.kind,
        "checkpoint": source.checkpoint,
        "checkpoint_time": source.checkpoint_time,
        "partial": source.partial,
        "wall_time": result.wall_time,
        "computed": record.computed if record else None,
        "probe": record.probe if record else None,
        "probe_name": record.probe_name if record else None,
        "measure": record.measure if record else None,
        "draw": result.result_record.draw if result.result_record else None,
        "program": record.program if record else None,
        "tokens": record.tokens if record else None,
        "samples": record.samples if record else None,
        "bytes": record.bytes if record else 0,
        "axes": {**record.axes} if record else {},
        "valid": {**record.valid} if record else {},
        "host": writer.host if writer else None,
        "package": writer.package if writer else None,
        "purpose": writer.purpose if writer else None,
    }


def result_json(result: Result) -> dict[str, Json]:
    """Return a result with its Views, its tables and the hashes of its files.

    Raises:
        BadInput: When its Views are larger than `MAX_BYTES`.
        LedgerError: When something is damaged.
    """
    size = sent_bytes(result)
    if size > MAX_BYTES:
        raise BadInput(
            f"The arrays are {size} bytes; at most {MAX_BYTES} are sent. "
            "Read them with theseus_track.store."
        )
    return {**described(result), **shown_json(result)}


def shown_json(result: Result) -> dict[str, Json]:
    """Return what a panel shows of a result: Views, else its values, and tables."""
    files: list[Json] = [
        {"part": part.part, "suffix": suffix, "digest": digest}
        for part in result.parts
        for suffix, digest in part.blobs.items()
    ]
    views = result.views
    return {
        "views": {part: view_json(view) for part, view in views.items()},
        "fallback": {} if views else fallback(result),
        "tables": {**result.tables},
        "blobs": files,
    }


def sent_bytes(result: Result) -> int:
    """Return the bytes of the arrays that `shown_json` sends."""
    leaves = [leaf for p in result.parts if p.view for leaf in p.view.arrays]
    record = result.values_record
    if not leaves and record is not None:
        leaves = [leaf for leaf in record.leaves if len(leaf.shape) <= 2]
    return sum(leaf.bytes for leaf in leaves)


def fallback(result: Result) -> dict[str, Json]:
    """Return the values of at most 2 axes as Views, for results without one."""
    record = result.values_record
    if record is None or all(len(leaf.shape) > 2 for leaf in record.leaves):
        return {}
    _, leaves = split_tree(result.values, host_leaf)
    return {
        leaf: view_json(_plain_view(leaf, array))
        for leaf, array in leaves
        if array.ndim <= 2
    }


def _plain_view(leaf: str, array: np.ndarray) -> View:
    if array.ndim == 2:
        return View(kind="heatmap", arrays={"values": array}, labels={"title": leaf})
    numbers = np.atleast_1d(array)
    arrays = {"x": np.arange(numbers.size, dtype=np.float64), "y": numbers}
    kind = "line" if numbers.size > 1 else "bar"
    return View(kind=kind, arrays=arrays, labels={"title": leaf})


def view_json(view: View) -> dict[str, Json]:
    """Return a View; each array has its dtype, shape and bytes in base 64."""
    return {
        "kind": view.kind,
        "arrays": {role: array_json(array) for role, array in view.arrays.items()},
        "labels": {**view.labels},
        "ticks": {axis: [*texts] for axis, texts in view.ticks.items()},
        "scale": {**view.scale},
        "caption": view.caption,
    }


def array_json(array: np.ndarray) -> dict[str, Json]:
    """Return an array with its dtype, shape and bytes in base 64."""
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


def mismatches(results: "list[Result]") -> list[Json]:
    """Return what differs among results that are shown side by side.

    Of "probe", "shape", "paths" and "measure"; a hash that is unknown in one and
    known in another counts as different.
    """
    records = [result.values_record for result in results]
    features: Mapping[str, set[object]] = {
        "probe": {record.probe if record else None for record in records},
        "shape": {tuple(sorted(result.shapes.items())) for result in results},
        "paths": {result.paths for result in results},
        "measure": {record.measure if record else None for record in records},
    }
    return [name for name, seen in features.items() if len(seen) > 1]
