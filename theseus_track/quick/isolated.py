"""Isolate: a call of a job's model, of a run's checkpoint, or of a recipe."""

import os
from typing import Any

from theseus_track.capture import isolate as isolate_call
from theseus_track.capture.paths import CALL
from theseus_track.errors import BadInput
from theseus_track.jobs import Recipe, Trainer, load_recipe, recipe_of
from theseus_track.jobs.place import saved_in
from theseus_track.jobs.rebuild import rebuild
from theseus_track.quick.saved import saved_variables
from theseus_track.store import Run

__all__ = ["isolate"]


def isolate(
    what: Trainer | Run | Recipe,
    path: str,
    *,
    step: int | None = None,
    checkpoints: str | os.PathLike[str] | None = None,
    method: str = CALL,
) -> Any:
    """Take a layer's call out of one evaluation of a job.

    Args:
        what: A Trainer that has a state; a run, whose own recipe is loaded or whose
            job is made anew, and of whose checkpoint only the variables of the
            forward pass are read; or a recipe.
        path: As in `capture.isolate`.
        step: Which checkpoint, of a run or of `checkpoints`; None for the latest.
        checkpoints: The directory of the checkpoints of a recipe; without it, its
            variables must be arrays.
        method: As in `capture.isolate`.

    Returns:
        As `capture.isolate` does: one call, or several as a list.

    Raises:
        NotFound: When there is no such checkpoint.
        BadInput: When the path or the step does not fit.
        UnreachedCall: When there is no such call.
    """
    if checkpoints is not None and not isinstance(what, Recipe):
        raise BadInput(
            f"checkpoints={os.fspath(checkpoints)!r} goes with a recipe; a run has its "
            "own."
        )
    recipe = _recipe_of(what)
    if isinstance(what, Run):
        _, variables = saved_variables(recipe, saved_in(what), step)
    elif checkpoints is not None:
        _, variables = saved_variables(recipe, checkpoints, step)
    elif step is not None:
        raise BadInput(
            f"step={step} chooses a checkpoint of a run; there is none here."
        )
    else:
        given = what.state if isinstance(what, Trainer) else what
        variables = given.variables
    taken = isolate_call(recipe.eval_step, path, method=method)
    return taken(variables, recipe.make_batch())


def _recipe_of(what: Trainer | Run | Recipe) -> Recipe:
    if isinstance(what, Recipe):
        return what
    if isinstance(what, Trainer):
        return recipe_of(what)
    if what.info.recipe:
        return load_recipe(what.info.recipe)
    return recipe_of(rebuild(what.info, []))
