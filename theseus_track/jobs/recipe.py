"""Recipe: what makes a checkpoint directory runnable that no job of ours has written.

A checkpoint holds arrays; to look inside the model, a replay also needs the eval
step, the shapes of what it takes, and a batch.
"""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theseus_track.errors import BadInput

if TYPE_CHECKING:
    from theseus_track.jobs.trainer import Trainer

__all__ = ["Recipe", "recipe_of"]


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How to run the model of a checkpoint.

    Attributes:
        eval_step: `(variables, batch) -> anything`, pure, jitted or not.
        variables: Shapes and dtypes of what the forward pass needs, as
            `jax.eval_shape` gives them: only these arrays are read. A tree of
            nested dicts; of NNX modules, `nnx.to_pure_dict(nnx.state(model))`.
        batch: The batch to look at, a pytree of arrays, or a function that makes it.
        train_step: The user's train step, for what differentiates; unused by a
            replay.
        item: Which item of a checkpoint with several holds the variables, such as
            "state" or "params"; None where there is one.
        take: Top-level name in `variables` -> where the checkpoint holds it, such as
            `{"params": "ema/params"}`; "" is the whole item. Default: every name
            where it is called the same.
        step: Says which training step a checkpoint's directory is of, >= 0, or None
            for one to pass over. Default: the last number in its name.

    Example:
        ```python
        import flax.linen as nn, jax, jax.numpy as jnp
        from theseus_track.jobs import Recipe

        model = nn.Dense(2)
        batch = jnp.ones((4, 3))
        variables = jax.eval_shape(model.init, jax.random.key(0), batch)
        recipe = Recipe(eval_step=model.apply, variables=variables, batch=batch)
        ```
    """

    eval_step: Callable[[Any, Any], Any]
    variables: Any
    batch: Any
    _: dataclasses.KW_ONLY
    train_step: Callable[..., Any] | None = None
    item: str | None = None
    take: Mapping[str, str] | None = None
    step: Callable[[Path], int | None] | None = None

    def __post_init__(self) -> None:
        if not callable(self.eval_step):
            raise BadInput(
                f"Recipe.eval_step is {self.eval_step!r}, not a function. Give "
                "(variables, batch) -> outputs."
            )
        if self.step is not None and not callable(self.step):
            raise BadInput(
                f"Recipe.step is {self.step!r}, not a function. Give one from the "
                "directory of a checkpoint to its training step."
            )
        unknown = set(self.take or ()) - set(self.names)
        if unknown:
            raise BadInput(
                f"Recipe.take names {sorted(unknown)}, which variables does not have. "
                f"It has: {sorted(self.names)}."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The top-level names of `variables`; none where it is one tree of its own."""
        return tuple(self.variables) if isinstance(self.variables, Mapping) else ()

    def make_batch(self) -> Any:
        """Return the batch, calling the function that makes it."""
        return self.batch() if callable(self.batch) else self.batch


def recipe_of(trainer: "Trainer") -> Recipe:
    """Say how to run the checkpoints of a Trainer; allocates no parameters.

    Args:
        trainer: With the hyperparameters of the run.

    Returns:
        A recipe that reads parameters and model state, and not the optimizer.
    """
    state = trainer.abstract_state()
    return Recipe(
        eval_step=trainer.eval_step,
        variables=state.variables,
        batch=trainer.batch,
        take={"params": "params"}
        | {name: f"model_state/{name}" for name in state.model_state},
    )
