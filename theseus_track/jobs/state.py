"""What a training changes from step to step, as one pytree."""

from typing import Any

import flax.struct
import jax

__all__ = ["TrainState", "Variables"]

# Flax' own nesting: collection -> module -> ... -> array.
Variables = dict[str, Any]


class TrainState(flax.struct.PyTreeNode):
    """Everything that a training changes, all of it on device.

    Random keys are not part of it: they follow from the seed and the step, so that
    a resumed training draws what an uninterrupted one would have drawn.

    Attributes:
        step: Updates made so far, int32 scalar.
        params: The parameters.
        model_state: The other collections, such as "batch_stats".
        opt_state: What the optimizer keeps.
    """

    step: jax.Array
    params: Variables
    model_state: Variables
    opt_state: Any

    @property
    def variables(self) -> Variables:
        """What the forward pass needs, as Linen's `apply` takes it."""
        return {"params": self.params, **self.model_state}
