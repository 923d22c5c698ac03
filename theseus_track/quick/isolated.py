"""isolate, debugger: a call of a job, of a run's checkpoint, or of a recipe."""

import os
from typing import Any

import jax
import jax.numpy as jnp

from theseus_track.capture import isolate as isolate_call
from theseus_track.capture.isolate import Isolator, asked
from theseus_track.capture.paths import CALL, Path
from theseus_track.errors import BadInput
from theseus_track.jobs import Recipe, Trainer, load_recipe, recipe_of
from theseus_track.jobs.debug import Debugged
from theseus_track.jobs.place import saved_in
from theseus_track.jobs.rebuild import rebuild
from theseus_track.quick.saved import saved_variables
from theseus_track.store import Run

__all__ = ["debugger", "isolate"]


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
            job is made anew, and of whose checkpoint only the variables that the
            call depends on are read; or a recipe.
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
    batch = recipe.make_batch()
    if isinstance(what, Run) or checkpoints is not None:
        directory = saved_in(what) if isinstance(what, Run) else checkpoints
        needed = _needed(recipe, batch, asked(path, method))
        _, variables = saved_variables(recipe, directory, step, needed=needed)
    elif step is not None:
        raise BadInput(
            f"step={step} chooses a checkpoint of a run; there is none here."
        )
    else:
        given = what.state if isinstance(what, Trainer) else what
        variables = given.variables
    taken = isolate_call(recipe.eval_step, path, method=method)
    return taken(variables, batch)


def _needed(recipe: Recipe, batch: Any, path: Path) -> Any:
    """Say which of the variables the call depends on; None where it cannot be told."""
    leaves, tree = jax.tree.flatten(recipe.variables)
    if not all(isinstance(x, jax.Array | jax.ShapeDtypeStruct) for x in leaves):
        return None
    used = Isolator(recipe.eval_step, [path]).needs((recipe.variables, batch), {})
    # Zeros are no keys of a random stream; keys are small.
    flags = [
        flag or jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        for flag, leaf in zip(used[: len(leaves)], leaves, strict=True)
    ]
    return jax.tree.unflatten(tree, flags)


def debugger(
    what: Trainer | Run | Recipe,
    path: str,
    *,
    step: int | None = None,
    checkpoints: str | os.PathLike[str] | None = None,
) -> Debugged:
    """Stop at a layer's call, as `Trainer.debug` does, wherever the state comes from.

    Args:
        what: As in `isolate`.
        path: As in `capture.isolate`.
        step: As in `isolate`.
        checkpoints: As in `isolate`.

    Returns:
        The layer and its inputs; its `calls` are all those that the path names.

    Raises:
        NotFound: When there is no such checkpoint.
        BadInput: When the path or the step does not fit.
        UnreachedCall: When there is no such call.
    """
    taken = isolate(what, path, step=step, checkpoints=checkpoints)
    return Debugged(taken if isinstance(taken, list) else [taken])


def _recipe_of(what: Trainer | Run | Recipe) -> Recipe:
    if isinstance(what, Recipe):
        return what
    if isinstance(what, Trainer):
        return recipe_of(what)
    if not isinstance(what, Run):
        raise BadInput(
            f"A Trainer, a run or a recipe is needed, not {what!r:.80}. A run by its "
            "name: Store(root).run(name)."
        )
    if what.info.recipe:
        return load_recipe(what.info.recipe)
    return recipe_of(rebuild(what.info, []))
