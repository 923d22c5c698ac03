"""The training loop: update, log, evaluate, save, and close whatever happens."""

import contextlib
import itertools
import logging
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

import jax

from theseus_track.errors import BadInput, PlanError, TheseusError
from theseus_track.jobs.evaluation import Evaluation
from theseus_track.jobs.place import Place, Settled, settle
from theseus_track.jobs.progress import Progress
from theseus_track.jobs.saving import Checkpoints, latest_step, restore_state
from theseus_track.jobs.spec import source_of, spec_of
from theseus_track.jobs.steps import Batch, make_train_step
from theseus_track.run import RunHandle, open_run

if TYPE_CHECKING:
    from theseus_track.jobs.trainer import Trainer

__all__ = ["train"]

_log = logging.getLogger(__name__)

# A number on the host or on a device.
N = TypeVar("N", float, jax.Array)


def train(trainer: "Trainer", place: Place) -> dict[str, float]:
    """Run a training from its first or its latest step to the last.

    Args:
        trainer: What to train; its state is advanced.
        place: Where the run goes.

    Returns:
        The last metrics.
    """
    settled = settle(place)
    start = _prepare(trainer, settled, place)
    evaluation = Evaluation(trainer, strict=place.strict)
    plan = _plan(evaluation, strict=place.strict)
    try:
        with contextlib.ExitStack() as stack:
            run = stack.enter_context(_open(trainer, place, settled, start))
            checkpoints = stack.enter_context(
                Checkpoints(settled.checkpoints, keep=trainer.args.keep, run=run.id)
            )
            progress = stack.enter_context(Progress(start, trainer.args.steps))
            progress.tell(f"{run.name} (id {run.id})")
            if plan:
                progress.tell(plan)
            return _loop(trainer, start, run, evaluation, checkpoints, progress)
    except KeyboardInterrupt as error:
        error.add_note(_how_to_go_on(trainer, settled))
        raise


def _loop(
    trainer: "Trainer",
    start: int,
    run: RunHandle,
    evaluation: Evaluation,
    checkpoints: Checkpoints,
    progress: Progress,
) -> dict[str, float]:
    args = trainer.args
    train_step = jax.jit(
        make_train_step(
            trainer.model, trainer.loss, trainer.optimizer(), streams=trainer.STREAMS
        ),
        donate_argnums=0,
    )
    key = trainer.keys()[1]
    last: dict[str, float] = {}
    for step, batch in _numbered(trainer.batches("train"), start, args.steps):
        trainer.state, metrics = train_step(trainer.state, batch, key)
        is_last = step == args.steps
        if is_last or step % args.log_every == 0:
            run.log_metrics(_named("train", metrics), step=step)
            last |= {k: float(v) for k, v in _named("train", metrics).items()}
        progress.advance(step, last.get("train/loss"))
        if is_last or step % args.eval_every == 0:
            found = evaluation(run, step=step)
            run.log_metrics(_named("eval", found), step=step)
            last |= _named("eval", found)
            progress.evaluated(step, last)
        if is_last or step % args.checkpoint_every == 0:
            checkpoints.save(trainer.state, step=step)
    return last


def _prepare(trainer: "Trainer", settled: Settled, place: Place) -> int:
    """Make the initial or the saved state; returns the step that it is of."""
    trainer.setup()
    step = int(trainer.state.step)
    if place.resume:
        step = latest_step(settled.checkpoints)
    if place.resume and place.at not in (None, step):
        # Orbax saves no step below one that is there, and nothing is deleted here.
        raise BadInput(
            f"The run {settled.id!r} has a checkpoint of step {step}, so it cannot go "
            f"on from step {place.at}: its later checkpoints would be of another "
            "training. Begin a new run from there with .branch()."
        )
    if step >= trainer.args.steps:
        raise BadInput(
            f"steps={trainer.args.steps} leaves nothing to do: "
            f"{f'the run {settled.id!r}' if place.resume else 'this Trainer'} is at "
            f"step {step} already. Give more steps, or make a new Trainer."
        )
    if place.resume and place.at is None:
        trainer.state = restore_state(settled.checkpoints, step, trainer.state)
    return step


def _how_to_go_on(trainer: "Trainer", settled: Settled) -> str:
    """Say what an interrupted training has kept."""
    kept = f"Interrupted. What was logged is kept: run {settled.id}, {settled.root}."
    try:
        step = latest_step(settled.checkpoints)
    except TheseusError:
        return f"{kept} There is no checkpoint yet, so that it can only begin again."
    job, root = shlex.quote(spec_of(type(trainer))), shlex.quote(str(settled.root))
    return (
        f"{kept} The latest checkpoint is of step {step}. Go on, with the same --set:"
        f"\n  theseus-track run {job} --resume {settled.id} --root {root}"
    )


def _plan(evaluation: Evaluation, *, strict: bool) -> str:
    """Find the faults of all analyses before anything runs; "" without analyses."""
    try:
        return evaluation.plan()
    except PlanError as error:
        if strict:
            raise
        _log.warning("%s\nThe training goes on without them.", error)
        return ""


def _open(trainer: "Trainer", place: Place, settled: Settled, start: int) -> RunHandle:
    return open_run(
        settled.root,
        project=place.project,
        name=place.name,
        id=settled.id,
        group=place.group,
        tags=place.tags,
        config=trainer.args,
        tensorboard=place.tensorboard,
        sinks=place.sinks,
        checkpoints=settled.checkpoints,
        job=spec_of(type(trainer)),
        job_source=source_of(type(trainer)),
        resumed_at=start + 1 if place.resume else None,
        strict=place.strict,
    )


def _numbered(
    batches: Iterator[Batch], start: int, steps: int
) -> Iterator[tuple[int, Batch]]:
    """Pair batches with the steps that they make, skipping those already made."""
    step = start
    for batch in itertools.islice(batches, start, steps):
        step += 1
        yield step, batch
    if step < steps:
        raise BadInput(
            f"batches('train') ended after {step} batches, but steps={steps}. Make it "
            "endless, such as by `while True`."
        )


def _named(prefix: str, metrics: Mapping[str, N]) -> dict[str, N]:
    return {f"{prefix}/{name}": value for name, value in metrics.items()}
