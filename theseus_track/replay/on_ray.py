"""A replay on the workers of a Ray cluster, or of this machine: the extra `ray`."""

import dataclasses
import os
import sys
from collections.abc import Sequence
from typing import Any

from theseus_track.errors import BadInput
from theseus_track.jobs.evaluation import PROBE
from theseus_track.replay.backfill import backfill
from theseus_track.replay.outcome import Outcome, joined
from theseus_track.replay.plan import ReplayPlan, plan_replay
from theseus_track.replay.selection import Steps
from theseus_track.replay.target import find_target
from theseus_track.sinks.syncing import Tell

__all__ = ["Request", "replay_on_ray"]

_RETRIES = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A replay in texts and numbers, so that another process can do a part of it.

    Attributes:
        what: A run, or a directory of checkpoints, as for `find_target`.
        analyses: `module:Class`, `file.py:Class` or installed keys.
        root: The ledger's root, which every worker sees under this path.
        recipe: As for `find_target`.
        into: As for `find_target`.
        steps: Which steps.
        only_missing: As for `plan_replay`.
        probe: As for `backfill`.
        allow_partial: As for `backfill`.
        group: As for `find_target`.
    """

    what: str
    analyses: tuple[str, ...]
    root: str
    recipe: str | None = None
    into: str | None = None
    steps: Steps = dataclasses.field(default_factory=Steps)
    only_missing: bool = False
    probe: str = PROBE
    allow_partial: bool = False
    group: str | None = None

    def plan(self) -> ReplayPlan:
        """Look at checkpoints and ledger as they are now."""
        target = find_target(
            self.what,
            self.analyses,
            root=self.root,
            recipe=self.recipe,
            into=self.into,
            allow_partial=self.allow_partial,
            group=self.group,
        )
        return plan_replay(
            target, self.steps, only_missing=self.only_missing, probe=self.probe
        )


def replay_on_ray(
    request: Request, *, workers: int, gpus: float = 0.0, tell: Tell | None = None
) -> Outcome:
    """Share the checkpoints among Ray tasks, each of which compiles once.

    A worker that dies is started again, up to three times, and goes on where it was
    killed, since the ledger knows what is done. Workers write to the ledger only.

    Args:
        request: What is replayed.
        workers: How many tasks, >= 1.
        gpus: GPUs of each task, which sees no others; >= 0.
        tell: Called after each task.

    Returns:
        What was done in all.

    Raises:
        BadInput: When Ray is not installed.
    """
    if workers < 1 or gpus < 0:
        raise BadInput(
            f"workers={workers}, gpus={gpus}: give at least 1 worker and 0 GPUs."
        )
    ray = _ray()
    mine = not ray.is_initialized()
    if mine:
        ray.init(
            include_dashboard=False,
            log_to_driver=False,
            logging_level="warning",
            runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}},
        )
    try:
        task = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=_RETRIES)(_part)
        refs = [task.remote(request, index, workers) for index in range(workers)]
        return _collected(ray, refs, request, tell)
    finally:
        if mine:
            ray.shutdown()


def _part(request: Request, index: int, count: int) -> Outcome:
    """Do one part; runs in a worker."""
    plan = request.plan().shard(index, count)
    return backfill(plan, probe=request.probe, allow_partial=request.allow_partial)


def _collected(
    ray: Any, refs: Sequence[Any], request: Request, tell: Tell | None
) -> Outcome:
    total: Outcome | None = None
    for count, ref in enumerate(refs, start=1):
        try:
            part = ray.get(ref)
        # One worker that cannot be had must not cost what the others did.
        except ray.exceptions.RayError as error:
            line = str(error).strip().split("\n", 1)[0]
            name = f"part {count - 1} of {len(refs)}"
            part = Outcome(
                run=request.what, done=(), skipped=0, failed={name: line}, faults={}
            )
        total = part if total is None else joined(total, part)
        if tell is not None:
            tell(count, len(refs))
    assert total is not None
    return total


def _ray() -> Any:
    # Nothing is sent anywhere without being asked for.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray  # noqa: PLC0415 - an extra, and heavy
    except ImportError as error:
        raise BadInput(
            "--engine ray needs Ray, which is not installed. Install it with "
            "`pip install 'theseus-track[ray]'`, or share the work with --shard."
        ) from error
    return ray
