"""backfill and follow: replay what is there now, or each checkpoint as it comes."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from theseus_track.errors import NotFound
from theseus_track.jobs.evaluation import PROBE
from theseus_track.replay.outcome import Outcome, joined
from theseus_track.replay.plan import ReplayPlan, plan_replay
from theseus_track.replay.replayer import Replayer
from theseus_track.replay.selection import Steps
from theseus_track.replay.target import Target
from theseus_track.sinks.syncing import Tell
from theseus_track.store.run_state import RUNNING, state_of

__all__ = ["backfill", "follow"]


def backfill(
    plan: ReplayPlan,
    *,
    probe: str = PROBE,
    batch: Any = None,
    strict: bool = False,
    allow_partial: bool = False,
    tell: Tell | None = None,
) -> Outcome:
    """Compute what is due and keep it at the steps and times of the checkpoints.

    The model is compiled once. The next checkpoint is read while one is computed,
    and figures are drawn beside. A broken checkpoint costs itself only; killed at
    any moment, the same plan made anew goes on where this one stopped.

    Args:
        plan: What to do.
        probe: What the batch is called in the ledger.
        batch: The batch, a pytree of arrays, a function that makes it, or the path of
            an `.npz` file. Default: the one that the run stored under that name, so
            that results can be compared with those of the training, else the recipe's.
        strict: Raise the first fault instead of leaving it out.
        allow_partial: Where a checkpoint lacks an array or has one of another shape,
            take that of the recipe's `variables`; the results say so.
        tell: Called with how many checkpoints are done and how many there are.

    Returns:
        What was done.

    Raises:
        BadInput: When the run has another batch of that name, or `THESEUS_TRACK` is
            off.
        PlanError: Under `strict`, with the faults of all analyses.
        CheckpointError: Under `strict`, when a checkpoint cannot be used.
        LedgerError: When the root cannot be written.
    """
    if not plan.due:
        return _nothing(plan)
    with Replayer(
        plan.target,
        probe=probe,
        batch=batch,
        strict=strict,
        allow_partial=allow_partial,
    ) as replayer:
        outcome = replayer.run(plan, tell)
        report = replayer.close()
    if report is None or (report.recorded and report.drawn and not report.lost):
        return outcome
    return dataclasses.replace(outcome, pending=(str(report),))


def follow(
    target: Target,
    steps: Steps | None = None,
    *,
    probe: str = PROBE,
    batch: Any = None,
    strict: bool = False,
    every: float = 10.0,
    tell: Callable[[Outcome], None] | None = None,
) -> Outcome:
    """Replay each checkpoint as it is committed, until the training has ended.

    Args:
        target: A run that is being trained, here or on another machine.
        steps: Which steps; default all.
        probe: As for `backfill`.
        batch: As for `backfill`.
        strict: As for `backfill`.
        every: How often to look, in seconds.
        tell: Called when something was computed.

    Returns:
        What was done in all.
    """
    total: Outcome | None = None
    with Replayer(target, probe=probe, batch=batch, strict=strict) as replayer:
        while True:
            # Asked before looking, so that the last checkpoint is not missed.
            last = not _is_training(target)
            try:
                plan = plan_replay(target, steps, probe=probe, batch=batch)
                outcome = replayer.run(plan)
            except NotFound:
                outcome = Outcome(
                    run=target.id, done=(), skipped=0, failed={}, faults={}
                )
            if outcome.done and tell is not None:
                tell(outcome)
            total = outcome if total is None else joined(total, outcome)
            if last:
                return total
            time.sleep(every)


def _is_training(target: Target) -> bool:
    if target.run is None:
        return False
    writers = target.run.refresh().writers()
    return state_of([pair for pair in writers if pair[1].purpose == "live"]) == RUNNING


def _nothing(plan: ReplayPlan) -> Outcome:
    return Outcome(
        run=plan.target.id,
        done=(),
        skipped=len(plan.checkpoints),
        failed={one.path.name: one.reason or one.state for one in plan.broken},
        faults={},
    )
