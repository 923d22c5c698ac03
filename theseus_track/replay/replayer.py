"""Replayer: one compiled step that goes over the checkpoints of plans."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

import jax

from theseus_track.analysis import AnalysisBase, Instrumented, instrument, is_off
from theseus_track.checkpoints import Restored, restore
from theseus_track.errors import BadInput, CheckpointError, PlanError, TheseusError
from theseus_track.jobs import Recipe
from theseus_track.jobs.evaluation import PROBE
from theseus_track.records import Source
from theseus_track.replay.outcome import Outcome
from theseus_track.replay.plan import Planned, ReplayPlan
from theseus_track.replay.prefetch import prefetched
from theseus_track.replay.target import Target
from theseus_track.run import CloseReport, RunHandle, open_run, reopen_run
from theseus_track.run.probe import batch_of, same_batch
from theseus_track.run.rank import decided_by_rank_zero
from theseus_track.sinks.syncing import Tell
from theseus_track.store import Store

__all__ = ["Replayer"]

_LONG = 7 * 24 * 3600.0


class Replayer:
    """Computes what plans of one target ask for, and keeps it in the ledger.

    The model is traced and compiled once. A context; leaving it closes the run.

    Attributes:
        faults: NAME -> why an analysis is left out.
    """

    def __init__(
        self,
        target: Target,
        *,
        probe: str = PROBE,
        batch: Any = None,
        strict: bool,
        allow_partial: bool = False,
    ) -> None:
        """Trace the analyses abstractly; nothing is computed or written.

        Args:
            target: What is replayed.
            probe: What the batch is called in the ledger.
            batch: The batch; default: the one that the run stored under that name,
                else the recipe's.
            strict: Raise the first fault instead of leaving it out.
            allow_partial: Where a checkpoint lacks an array or has one of another
                shape, take that of the recipe's `variables`; the results say so.

        Raises:
            BadInput: When `THESEUS_TRACK` is off.
            PlanError: Under `strict`, with the faults of all analyses.
        """
        if is_off():
            raise BadInput("THESEUS_TRACK=off: a replay computes nothing. Unset it.")
        make = target.recipe.make_batch
        self._target = target
        self._probe = probe
        self._strict = strict
        self._allow_partial = allow_partial
        given = batch_of(batch)
        self._batch = same_batch(target.run, probe, make) if given is None else given
        step = _jitted(target.recipe)
        sound, self.faults = _sound(step, target, self._batch, strict=strict)
        self._step = instrument(step, sound, strict=strict) if sound else None
        self._run: RunHandle | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def run(self, plan: ReplayPlan, tell: Tell | None = None) -> Outcome:
        """Compute what is due; returns when it is drawn and in the ledger.

        Args:
            plan: What to do, of this target.
            tell: Called after each checkpoint.

        Returns:
            What was done.

        Raises:
            BadInput: When the run has another batch under the probe's name.
            CheckpointError: Under `strict`, when a checkpoint cannot be used.
            LedgerError: When the root cannot be written.
        """
        _check_agreed(plan)
        failed = {one.path.name: one.reason or one.state for one in plan.broken}
        if self._strict and failed:
            name, why = next(iter(failed.items()))
            raise CheckpointError(f"{name} cannot be used: {why}")
        done: list[int] = []
        due = plan.due if self._step is not None else ()
        if due and self._step is not None:
            run = self._opened()
            for count, (planned, read) in enumerate(prefetched(due, self._read), 1):
                problem = self._one(self._step, run, planned, read)
                if problem is None:
                    done.append(planned.step)
                else:
                    failed[planned.checkpoint.path.name] = problem
                if tell is not None:
                    tell(count, len(due))
            # Drawing may take longer than computing did; here nobody waits for us.
            run.flush(_LONG)
        return Outcome(
            run=self._target.id,
            done=tuple(done),
            skipped=len(plan.checkpoints) - len(plan.due),
            failed=failed,
            faults=self.faults if plan.due else {},
            undrawn=_undrawn(self._target, done) if done else {},
        )

    def close(self) -> CloseReport | None:
        """End the run's writer; None when nothing was written."""
        return None if self._run is None else self._run.close(_LONG)

    def _opened(self) -> RunHandle:
        if self._run is None:
            run = _open(self._target, strict=self._strict)
            try:
                run.probe(self._probe, self._batch)
            except BaseException:
                run.close()
                raise
            self._run = run
        return self._run

    def _read(self, planned: Planned) -> Restored:
        recipe = self._target.recipe
        found = restore(
            planned.checkpoint,
            recipe.variables,
            item=recipe.item,
            take=recipe.take,
            allow_partial=self._allow_partial,
        )
        for path, leaf in jax.tree_util.tree_leaves_with_path(found.tree):
            if isinstance(leaf, jax.ShapeDtypeStruct):
                raise CheckpointError(
                    f"{planned.checkpoint.path} has no array that fits "
                    f"{jax.tree_util.keystr(path)}, and the recipe gives none: its "
                    "variables are shapes. Give arrays, such as model.init(...)."
                )
        return found

    def _one(
        self,
        step: Instrumented,
        run: RunHandle,
        planned: Planned,
        read: "Future[Restored]",
    ) -> str | None:
        """Compute one checkpoint; says in one line why it could not be."""
        saved = planned.checkpoint
        try:
            restored = read.result()
            _, values = step(restored.tree, self._batch)
            jax.block_until_ready(values)
        # Orbax, XLA and the user's own code may raise anything; one checkpoint must
        # not stop the others.
        except Exception as error:
            if self._strict:
                raise
            line = str(error).strip().split("\n", 1)[0]
            return line if isinstance(error, TheseusError) else f"{error!r:.200}"
        run.log(
            values.only(name for name in planned.due if name in values),
            step=planned.step,
            wall_time=saved.wall_time,
            probe=self._probe,
            source=Source(
                kind="replay",
                checkpoint=str(saved.path),
                checkpoint_time=saved.wall_time,
                partial=restored.partial,
            ),
        )
        return None


def _check_agreed(plan: ReplayPlan) -> None:
    """Refuse to begin where processes plan differently: they would wait for ever."""
    told = decided_by_rank_zero(lambda: plan.digest)
    if told != plan.digest:
        raise BadInput(
            "Process 0 plans another replay than this one, which sees another ledger "
            "or other checkpoints. Put both on a file system that all hosts share."
        )


def _jitted(recipe: Recipe) -> Callable[..., Any]:
    step = recipe.eval_step
    # With `lower` it is jitted already, and keeps the user's shardings.
    return step if hasattr(step, "lower") else jax.jit(step)


def _sound(
    step: Callable[..., Any], target: Target, batch: Any, *, strict: bool
) -> tuple[Sequence[AnalysisBase], dict[str, str]]:
    """Find the analyses without a fault, and the faults of the others."""
    variables = target.recipe.variables
    try:
        instrument(step, target.analyses).plan(variables, batch)
    except PlanError:
        if strict:
            raise
    else:
        return target.analyses, {}
    faults = {}
    for analysis in target.analyses:
        try:
            instrument(step, [analysis]).plan(variables, batch)
        except PlanError as error:
            faults[analysis.NAME] = str(error).rpartition("\n- ")[2]
    return [a for a in target.analyses if a.NAME not in faults], faults


def _open(target: Target, *, strict: bool) -> RunHandle:
    if target.run is not None:
        return reopen_run(target.root, target.run.id, strict=strict)
    return open_run(
        target.root,
        name=target.name,
        id=target.id,
        recipe=target.recipe_file,
        checkpoints=target.directory,
        strict=strict,
    )


def _undrawn(
    target: Target, done: Sequence[int]
) -> dict[str, tuple[tuple[int, ...], str]]:
    """Find what was computed and could not be drawn."""
    names = {analysis.NAME for analysis in target.analyses}
    found: dict[str, tuple[tuple[int, ...], str]] = {}
    for result in Store(target.root).run(target.id).results():
        record = result.result_record
        if record is not None and record.phase == "branch":
            continue  # Left out on purpose: its branch was not taken.
        if result.error and result.name in names and result.step in done:
            steps, why = found.get(result.name, ((), result.error))
            found[result.name] = ((*steps, result.step), why)
    return found
