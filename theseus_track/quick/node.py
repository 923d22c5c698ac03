"""Node: one step of one run, with all that is known of it."""

import dataclasses
from collections.abc import Mapping

from theseus_track.checkpoints import Checkpoint
from theseus_track.records.strict_json import Json
from theseus_track.store import Result, Run

__all__ = ["MISSING", "Node", "nodes_of"]

MISSING = object()
"""What `Node.get` returns for a key that the node lacks."""

_ABOUT = ("project", "name", "id", "group", "state")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """One step of one run.

    Attributes:
        run: The run.
        step: Training step, >= 0.
        wall_time: When something was last logged or saved for that step, in seconds
            since the epoch, UTC.
        metrics: Metric -> its number as of this step: logged there, else at the last
            step before.
        results: NAME -> the result of that analysis at this very step.
        checkpoint: The whole checkpoint of this very step, or None.
    """

    run: Run
    step: int
    wall_time: float
    metrics: Mapping[str, Json]
    results: Mapping[str, Result]
    checkpoint: Checkpoint | None

    def get(self, key: str) -> object:
        """Return what a query key means here, or MISSING.

        Args:
            key: "step", "wall_time", "project", "name", "id", "group", "state",
                "config.FIELD", or a metric such as "train/loss".
        """
        if key == "step":
            return self.step
        if key == "wall_time":
            return self.wall_time
        if key in _ABOUT:
            return getattr(self.run, key, None) or getattr(self.run.info, key, None)
        if key.startswith("config."):
            return self.run.info.config.get(key.removeprefix("config."), MISSING)
        value = self.metrics.get(key, MISSING)
        # The ledger writes a number that JSON lacks as a text.
        return float(value) if isinstance(value, str) else value

    def __repr__(self) -> str:
        parts = [f"{self.run.name} (id {self.run.id})", f"step {self.step}"]
        parts += [] if self.checkpoint is None else ["checkpoint"]
        parts += [", ".join(self.results)] if self.results else []
        return f"Node({' · '.join(parts)})"


def nodes_of(run: Run, checkpoints: Mapping[int, Checkpoint]) -> list[Node]:
    """Return every step of a run that has a metric, a result or a checkpoint.

    Args:
        run: The run; what a resumed attempt superseded is left out.
        checkpoints: Step -> the whole checkpoint of that step.

    Returns:
        By step.
    """
    rows: dict[int, dict[str, Json]] = {}
    times: dict[int, float] = {step: c.wall_time for step, c in checkpoints.items()}
    for row in run.metrics():
        rows.setdefault(row.step, {}).update(row.metrics)
        times[row.step] = max(times.get(row.step, 0.0), row.wall_time)
    results: dict[int, dict[str, Result]] = {}
    for result in run.results():
        results.setdefault(result.step, {})[result.name] = result
        times[result.step] = max(times.get(result.step, 0.0), result.wall_time)
    known: dict[str, Json] = {}
    nodes = []
    for step in sorted(times):
        known = {**known, **rows.get(step, {})}
        nodes.append(
            Node(
                run=run,
                step=step,
                wall_time=times[step],
                metrics=known,
                results=results.get(step, {}),
                checkpoint=checkpoints.get(step),
            )
        )
    return nodes
