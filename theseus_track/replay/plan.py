"""ReplayPlan: which analysis runs on which checkpoint, and why the others do not."""

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from theseus_track.analysis import AnalysisBase, draw_hash, measure_hash
from theseus_track.checkpoints import Checkpoint, Ignored, find_checkpoints
from theseus_track.jobs.evaluation import PROBE
from theseus_track.replay.selection import Steps
from theseus_track.replay.target import Target
from theseus_track.run.probe import batch_hash, batch_of
from theseus_track.store import Result

__all__ = ["Planned", "ReplayPlan", "plan_replay"]

Status = Literal["new", "changed", "batch", "done", "redraw"]

_TOLD: Mapping[Status, str] = {
    "new": "to compute",
    "changed": "to compute again (the measuring changed)",
    "batch": "to compute again (on another batch)",
    "done": "there already",
    "redraw": "there, drawn by other code (`theseus-track replot` draws them again)",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One checkpoint and what is to be computed on it.

    Attributes:
        step: Its training step, >= 0.
        checkpoint: The checkpoint.
        status: NAME -> "new" without a result, "changed" with one of other measuring
            code, "batch" with one of another batch, "redraw" with one of other drawing
            code (which `replot` draws again without the model), "done" with an equal
            one.
    """

    step: int
    checkpoint: Checkpoint
    status: Mapping[str, Status]

    @property
    def due(self) -> list[str]:
        """The NAMEs to compute."""
        return [
            name for name, s in self.status.items() if s in ("new", "changed", "batch")
        ]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPlan:
    """What a replay does; print it.

    Attributes:
        target: What is replayed.
        checkpoints: The chosen checkpoints, by step, those included that need
            nothing.
        broken: Checkpoints that cannot be used, and say why.
        unfinished: Checkpoints that are being written, or whose writer died.
        ignored: What only looks like a checkpoint.
    """

    target: Target
    checkpoints: tuple[Planned, ...]
    broken: tuple[Checkpoint, ...]
    unfinished: tuple[Checkpoint, ...]
    ignored: tuple[Ignored, ...]

    @property
    def due(self) -> tuple[Planned, ...]:
        """The checkpoints on which something is to be computed."""
        return tuple(planned for planned in self.checkpoints if planned.due)

    def shard(self, index: int, count: int) -> "ReplayPlan":
        """Return the part of one of several processes: every `count`-th checkpoint.

        Also of those that need nothing, so that all processes agree whenever each of
        them looks at the ledger.

        Args:
            index: Which part, 0 <= index < count.
            count: How many parts.
        """
        return dataclasses.replace(
            self,
            checkpoints=self.checkpoints[index::count],
            broken=self.broken[index::count],
            unfinished=self.unfinished[index::count],
            ignored=self.ignored[index::count],
        )

    @property
    def digest(self) -> str:
        """A hash of what will be computed, by which several processes compare."""
        work = [(one.step, str(one.checkpoint.path), one.due) for one in self.due]
        return hashlib.sha256(repr(work).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        """Say what will be done, one line for each analysis and broken checkpoint."""
        count = len(self.checkpoints)
        place = "a new run" if self.target.run is None else "the run"
        lines = [
            f"{self.target.directory}: {count} checkpoint{'s' * (count != 1)}, results "
            f"go to {place} {self.target.name} (id {self.target.id})."
        ]
        for name, found in self.counts().items():
            told = [f"{len(steps)} {_TOLD[s]}" for s, steps in found.items()]
            lines.append(f"  {name}: {', '.join(told) or 'nothing to do'}")
        lines += self._agreement()
        lines += [f"  {c.path.name} is broken: {c.reason}" for c in self.broken]
        lines += [f"  {c.path.name} is left out: {c.reason}" for c in self.unfinished]
        lines += [f"  {i.path.name} is passed over: {i.reason}" for i in self.ignored]
        return "\n".join(lines)

    def _agreement(self) -> list[str]:
        """Say how far what is computed agrees with what the training computes."""
        asked = {analysis.NAME for analysis in self.target.analyses}
        inline = self.target.inline
        if not self.due or not inline or inline == asked:
            return []
        return [
            f"  The training computes {', '.join(sorted(inline))}. Another set of "
            "analyses agrees with it within rounding, 1e-6 in float32, and not to the "
            "last bit; its results carry another `program`."
        ]

    def counts(self) -> dict[str, dict[Status, list[int]]]:
        """Return NAME -> status -> steps."""
        found: dict[str, dict[Status, list[int]]] = {
            analysis.NAME: {} for analysis in self.target.analyses
        }
        for planned in self.checkpoints:
            for name, status in planned.status.items():
                found[name].setdefault(status, []).append(planned.step)
        return found


def plan_replay(
    target: Target,
    steps: Steps | None = None,
    *,
    only_missing: bool = False,
    probe: str = PROBE,
    batch: Any = None,
) -> ReplayPlan:
    """Compare the checkpoints with the ledger; computes nothing.

    Args:
        target: What is replayed.
        steps: Which steps; default all.
        only_missing: Leave alone what has any result at a step, also one of other
            measuring code or of another batch.
        probe: As for `backfill`.
        batch: As for `backfill`.

    Returns:
        The plan.

    Raises:
        NotFound: When there is no checkpoint, or none at the steps asked for.
    """
    found = find_checkpoints(target.directory, step_of=target.recipe.step)
    whole = found.by_step(target.group)
    others = [c for c in found.checkpoints if target.group in (None, c.group)]
    chosen = (steps or Steps()).choose(whole)
    latest = _latest_results(target)
    looked_at = _batch_hash(target, probe, batch)
    planned = [
        Planned(
            step=step,
            checkpoint=whole[step],
            status={
                analysis.NAME: _status(
                    analysis,
                    latest.get((analysis.NAME, step)),
                    only_missing=only_missing,
                    batch=looked_at,
                )
                for analysis in target.analyses
            },
        )
        for step in chosen
    ]
    return ReplayPlan(
        target=target,
        checkpoints=tuple(planned),
        broken=tuple(c for c in others if c.state == "broken"),
        unfinished=tuple(c for c in others if c.state == "in progress"),
        ignored=found.ignored,
    )


def _latest_results(target: Target) -> dict[tuple[str, int], Result]:
    if target.run is None:
        return {}
    return {
        (result.name, result.step): result
        for result in _with_values(target.run.refresh().results())
    }


def _with_values(results: Iterable[Result]) -> Iterable[Result]:
    # Without values it was a fault of tracing, or a host-side figure; without a
    # result the process died before it was drawn.
    return (r for r in results if r.values_record and r.result_record)


def _batch_hash(target: Target, probe: str, batch: Any) -> str | None:
    """Return the hash of the batch that will be looked at; None where it is new."""
    if batch is not None:
        return batch_hash(batch_of(batch))
    stored = target.run.probes.get(probe) if target.run is not None else None
    return stored.hash if stored is not None else None


def _status(
    analysis: AnalysisBase,
    result: Result | None,
    *,
    only_missing: bool,
    batch: str | None,
) -> Status:
    if result is None or result.values_record is None:
        return "new"
    if only_missing:
        return "done"
    if result.values_record.measure != measure_hash(analysis):
        return "changed"
    if None not in (batch, result.values_record.probe) and (
        result.values_record.probe != batch
    ):
        return "batch"
    drawn = result.result_record.draw if result.result_record else None
    return "done" if drawn in (None, draw_hash(analysis)) else "redraw"
