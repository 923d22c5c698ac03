"""One analysis of several runs at one step, and its frames over all steps of one."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from theseus_track.dashboard.one_panel import one_panel, panel_names
from theseus_track.dashboard.values import (
    MAX_BYTES,
    array_json,
    described,
    mismatches,
    sent_bytes,
    shown_json,
)
from theseus_track.errors import BadInput, LedgerError, NotFound
from theseus_track.records import View, host_leaf, split_tree
from theseus_track.records.strict_json import Json, to_json_value
from theseus_track.store import Result, RunIndex
from theseus_track.store.query import Finding

__all__ = ["Moment", "film", "panels"]

_MAX_PLACES = 4096


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When in a run: at a step, at so many tokens, or where a metric fell below.

    Attributes:
        step: Training step, or None.
        tokens: Tokens seen, or None.
        metric: The name of a metric, or None.
        below: The number that the metric first falls below.
        exact: Whether only a record of that very step will do.
    """

    step: int | None = None
    tokens: int | None = None
    metric: str | None = None
    below: float = 0.0
    exact: bool = False


def panels(
    runs: dict[str, RunIndex], name: str, moment: Moment
) -> tuple[list[Json], list[Json]]:
    """Return a panel for each run, and what differs among them.

    Args:
        runs: By key, in the order of the panels.
        name: The NAME of an analysis.
        moment: When; a panel shows the nearest earlier record, and its step.
    """
    shown: list[Json] = []
    results: list[Result] = []
    left = MAX_BYTES
    for key, run in runs.items():
        panel: dict[str, Json] = {"run": key, **_EMPTY}
        try:
            step = _step(run, moment)
            result = run.result(_nearest(run, name, step, exact=moment.exact))
            left -= sent_bytes(result)
            _check_room(left)
            panel |= {
                "step": result.step,
                "exact": result.step == step,
                "result": described(result),
                "error": result.error,
                **shown_json(result),
            }
            results.append(result)
        except NotFound as why:
            panel["missing"] = str(why)
        except (BadInput, LedgerError) as error:
            panel["error"] = str(error)
        shown.append(panel)
    return shown, mismatches(results)


_EMPTY: dict[str, Json] = {
    "step": None,
    "exact": False,
    "missing": None,
    "result": None,
    "views": {},
    "fallback": {},
    "tables": {},
    "blobs": [],
    "error": None,
}


def film(
    run: RunIndex, name: str, part: str, cells: int, panel: int = 0
) -> dict[str, Json]:
    """Return one frame for each step of an analysis, reduced to a few cells.

    Args:
        run: The run.
        name: The NAME of an analysis.
        part: The part of its results, or the leaf of its values without a View.
        cells: The largest side of a frame; larger ones are means of their cells.
        panel: Which panel of Views that have several, >= 0.

    Raises:
        NotFound: When the run has no result of that name.
        BadInput: When the frames are larger than `MAX_BYTES`.
    """
    found = [f for f in run.findings() if f.name == name and not f.superseded]
    if not found:
        raise NotFound(f"The run has no result of {name!r}.")
    if len(found) * cells * cells * 4 > MAX_BYTES:
        raise BadInput(
            f"{len(found)} frames of {cells} cells are too many; ask for smaller ones."
        )
    steps: list[int] = []
    frames: list[np.ndarray] = []
    skipped: list[Json] = []
    full: tuple[int, ...] = ()
    last: View | None = None
    names: list[Json] = []
    low, high = np.inf, -np.inf
    for finding in found:
        try:
            several, view, array = _frame(run, finding, part, panel)
            _check_shape(array, full)
        except (BadInput, LedgerError, NotFound) as why:
            skipped.append({"step": finding.step, "why": str(why)})
            continue
        full, last, names = array.shape, view or last, [*several]
        finite = array[np.isfinite(array)]
        if finite.size:
            low, high = min(low, finite.min()), max(high, finite.max())
        steps.append(finding.step)
        frames.append(_pooled(array, cells))
    stacked = np.stack(frames) if frames else np.empty((0, 0, 0), np.float32)
    return {
        "name": name,
        "part": part,
        "panel": panel,
        "panels": names,
        "steps": [*steps],
        "shape": [*stacked.shape[1:]],
        "full": [*full],
        "frames": array_json(stacked),
        "low": float(low) if frames and np.isfinite(low) else None,
        "high": float(high) if frames and np.isfinite(high) else None,
        "labels": {**last.labels} if last else {},
        "ticks": {axis: [*texts] for axis, texts in last.ticks.items()} if last else {},
        "scale": {**last.scale} if last else {},
        "x": _places(last),
        "skipped": skipped,
    }


def _places(view: View | None) -> Json:
    """Return where the points of a line are, which a frame shows as one row."""
    if view is None or "values" in view.arrays or "x" not in view.arrays:
        return None
    x = view.arrays["x"]
    return to_json_value(x[:_MAX_PLACES]) if x.dtype.kind in "biuf" else None


def _step(run: RunIndex, moment: Moment) -> int:
    if moment.step is not None:
        return moment.step
    if moment.metric is not None:
        curve = run.curve(moment.metric)
        reached = np.flatnonzero(curve.value < moment.below)
        if not reached.size:
            raise NotFound(f"{moment.metric} never falls below {moment.below:g}.")
        return int(curve.step[reached[0]])
    counted = [
        (tokens, step)
        for tokens, step in _counted(run)
        if tokens <= (moment.tokens or 0)
    ]
    if not counted:
        raise NotFound("No record says how many tokens were seen by then.")
    return max(counted)[1]


def _counted(run: RunIndex) -> Iterator[tuple[int, int]]:
    for finding in run.findings():
        if finding.values is not None and finding.values.tokens is not None:
            yield finding.values.tokens, finding.step
    for name in run.metrics[:1]:
        curve = run.curve(name)
        known = curve.tokens >= 0
        yield from zip(
            curve.tokens[known].tolist(), curve.step[known].tolist(), strict=True
        )


def _nearest(run: RunIndex, name: str, step: int, *, exact: bool) -> Finding:
    found = [f for f in run.findings() if f.name == name and not f.superseded]
    if not found:
        raise NotFound(f"The run has no result of {name!r}.")
    earlier = [f for f in found if (f.step == step if exact else f.step <= step)]
    if not earlier:
        where = "at" if exact else "at or before"
        raise NotFound(
            f"No result {where} step {step}; it has {len(found)} from step "
            f"{found[0].step} to {found[-1].step}."
        )
    return earlier[-1]


def _check_room(left: int) -> None:
    if left < 0:
        raise BadInput(
            f"The arrays of all panels are more than {MAX_BYTES} bytes. "
            "Choose fewer runs."
        )


def _check_shape(array: np.ndarray, shape: tuple[int, ...]) -> None:
    if shape and array.shape != shape:
        raise BadInput(f"Its shape is {array.shape}, not {shape}.")


def _frame(
    run: RunIndex, finding: Finding, part: str, panel: int
) -> tuple[list[str], View | None, np.ndarray]:
    if finding.result_ref is not None:
        # Without its values, which few films need and every step would read.
        drawn = dataclasses.replace(finding, values=None, values_ref=None)
        result = run.result(drawn)
        if result.error is not None:
            raise BadInput(result.error)
        whole = result.views.get(part)
        view = one_panel(whole, panel) if whole else None
        roles = ("values", "y")
        shown = [view.arrays[r] for r in roles if r in view.arrays] if view else []
        if whole and shown:
            return panel_names(whole), view, _flat(shown[0])
    _, leaves = split_tree(run.result(finding).values, host_leaf)
    for leaf, array in leaves:
        if leaf == part and array.ndim <= 2:
            return [], None, _flat(array)
    raise BadInput("It has no View and no value of at most 2 axes to show.")


def _flat(array: np.ndarray) -> np.ndarray:
    if array.ndim > 2:
        raise BadInput(f"A frame has 2 axes, not {array.ndim}.")
    return np.atleast_2d(array).astype(np.float32, copy=False)


def _pooled(array: np.ndarray, cells: int) -> np.ndarray:
    for axis, size in enumerate(array.shape):
        if size > cells:
            edges = np.linspace(0, size, cells, endpoint=False).astype(int)
            width = np.diff(np.append(edges, size))
            shape = (-1, 1) if axis == 0 else (1, -1)
            array = np.add.reduceat(array, edges, axis=axis) / width.reshape(shape)
    return array.astype(np.float32, copy=False)
