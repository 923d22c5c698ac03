"""Isolate: a call of a job's model, of a run's checkpoint, or of a recipe."""

from typing import Any

from theseus_track.capture import isolate as isolate_call
from theseus_track.capture.paths import CALL
from theseus_track.checkpoints import find_checkpoints, restore
from theseus_track.errors import BadInput, NotFound
from theseus_track.jobs import Recipe, Trainer, recipe_of
from theseus_track.jobs.place import saved_in
from theseus_track.jobs.rebuild import rebuild
from theseus_track.store import Run

__all__ = ["isolate"]


def isolate(
    what: Trainer | Run | Recipe,
    path: str,
    *,
    step: int | None = None,
    method: str = CALL,
) -> Any:
    """Take a layer's call out of one evaluation of a job.

    Args:
        what: A Trainer that has a state; a run of ours, whose job is made anew and of
            whose checkpoint only the variables of the forward pass are read; or a
            recipe whose variables are arrays.
        path: As in `capture.isolate`.
        step: Of a run: which checkpoint; None for the latest.
        method: As in `capture.isolate`.

    Returns:
        As `capture.isolate` does: one call, or several as a list.

    Raises:
        NotFound: When the run has no such checkpoint.
        BadInput: When the path or the step does not fit.
        UnreachedCall: When there is no such call.
    """
    if isinstance(what, Run):
        recipe, variables = _saved(what, step)
    elif step is not None:
        raise BadInput(
            f"step={step} chooses a checkpoint of a run; there is none here."
        )
    elif isinstance(what, Trainer):
        recipe, variables = recipe_of(what), what.state.variables
    else:
        recipe, variables = what, what.variables
    taken = isolate_call(recipe.eval_step, path, method=method)
    return taken(variables, recipe.make_batch())


def _saved(run: Run, step: int | None) -> tuple[Recipe, Any]:
    """Read the variables of a checkpoint; the optimizer stays on disk."""
    directory = saved_in(run)
    saved = {} if directory is None else find_checkpoints(directory).by_step()
    if not saved or (step is not None and step not in saved):
        known = ", ".join(map(str, saved)) or "none"
        raise NotFound(
            f"The run {run.name!r} (id {run.id}) has no checkpoint"
            f"{'' if step is None else f' of step {step}'}; there are: {known}."
        )
    recipe = recipe_of(rebuild(run.info, []))
    chosen = saved[max(saved) if step is None else step]
    found = restore(chosen, recipe.variables, item=recipe.item, take=recipe.take)
    return recipe, found.tree
