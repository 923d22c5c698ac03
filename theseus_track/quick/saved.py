"""The variables of one saved checkpoint, as the forward pass of a recipe takes them."""

import os
from typing import Any

import jax
import jax.numpy as jnp

from theseus_track.checkpoints import find_checkpoints, restore
from theseus_track.errors import NotFound
from theseus_track.jobs import Recipe

__all__ = ["saved_variables"]


def saved_variables(
    recipe: Recipe,
    directory: str | os.PathLike[str] | None,
    step: int | None,
    *,
    needed: Any = None,
) -> tuple[int, Any]:
    """Read what the forward pass needs of a checkpoint; the optimizer stays on disk.

    Args:
        recipe: What is read, and which step a directory is of.
        directory: Where the checkpoints are; None when nobody knows.
        step: Which one; None for the latest.
        needed: A tree of bools like the recipe's variables; what is not needed stays
            on disk, and zeros stand for it. None: all are read.

    Returns:
        The step and the variables.

    Raises:
        NotFound: When there is no such checkpoint.
        CheckpointError: When it cannot be read, or does not fit.
    """
    saved = (
        {}
        if directory is None
        else find_checkpoints(directory, step_of=recipe.step).by_step()
    )
    if not saved or (step is not None and step not in saved):
        known = ", ".join(map(str, saved)) or "none"
        raise NotFound(
            f"{directory or 'The run'} has no checkpoint"
            f"{'' if step is None else f' of step {step}'}; there are: {known}."
        )
    chosen = max(saved) if step is None else step
    found = restore(
        saved[chosen],
        recipe.variables,
        item=recipe.item,
        take=recipe.take,
        needed=needed,
    ).tree
    if needed is None:
        return chosen, found
    return chosen, jax.tree.map(
        lambda leaf, is_read: leaf if is_read else jnp.zeros(leaf.shape, leaf.dtype),
        found,
        needed,
    )
