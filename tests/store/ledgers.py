"""Small ledgers for the tests: what a run, a value and a result look like."""

from pathlib import Path
from typing import Any

import numpy as np

from theseus_track.records import MetricsRecord, RecordRef, RunInfo, View
from theseus_track.store import LedgerWriter, NewPart, NewResult, NewValues

PNG = b"\x89PNG\r\n\x1a\n pixels"
PDF = b"%PDF-1.4 page"


def run_info(run_id: str = "r1", **changes: Any) -> RunInfo:
    """Return a run; `changes` are fields of RunInfo."""
    fields: dict[str, Any] = {
        "project": "lab",
        "name": "train-gpt",
        "created": 1.0,
    } | changes
    return RunInfo(id=run_id, **fields)


def writer(root: Path, run_id: str = "r1", **options: Any) -> LedgerWriter:
    """Open a writer; `options` are those of LedgerWriter.create."""
    return LedgerWriter.create(root, run_info(run_id), **options)


def new_values(
    step: int, value: object = None, *, name: str = "activations", **changes: Any
) -> NewValues:
    """Return values; `changes` are fields of NewValues."""
    fields: dict[str, Any] = {
        "key": f"my/{name}",
        "paths": ("blocks_0/attn",),
        "wall_time": 100.0 + step,
        "computed": 200.0 + step,
        "value": np.full((2, 3), step, np.float32) if value is None else value,
    }
    return NewValues(name=name, step=step, **fields | changes)


def new_figure(
    step: int,
    values: RecordRef | None = None,
    *,
    name: str = "activations",
    **changes: Any,
) -> NewResult:
    """Return a drawn figure with a View; `changes` are fields of NewResult."""
    view = View(kind="heatmap", arrays={"values": np.eye(2)}, ticks={"x": ["a", "b"]})
    part = NewPart(part="", kind="figure", blobs={"png": PNG, "pdf": PDF}, view=view)
    fields: dict[str, Any] = {
        "key": f"my/{name}",
        "paths": ("blocks_0/attn",),
        "wall_time": 100.0 + step,
        "parts": (part,),
    }
    return NewResult(name=name, step=step, values=values, **fields | changes)


def table_part(text: str, part: str = "") -> NewPart:
    """Return a JSON value as a part of a result."""
    return NewPart(part=part, kind="json", blobs={"json": text.encode()})


def metrics(step: int, **numbers: Any) -> MetricsRecord:
    """Return a row of metrics."""
    return MetricsRecord(step=step, wall_time=100.0 + step, metrics=numbers)


def evaluate(
    ledger: LedgerWriter, step: int, *names: str, value: object = None
) -> None:
    """Append values and a figure for each analysis, as one evaluation does."""
    chosen = names or ("activations",)
    refs = ledger.append(*(new_values(step, value, name=name) for name in chosen))
    pairs = zip(chosen, refs, strict=True)
    ledger.append(*(new_figure(step, ref, name=name) for name, ref in pairs))
