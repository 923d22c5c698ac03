"""What a training changes from step to step, as one pytree."""

from typing import Any

import flax.struct
import jax

__all__ = ["TrainState", "Variables"]

# Flax' own nesting: collection -> module -> ... -> array.
Variables = dict[str, Any]


class TrainState(flax.struct.PyTreeNode):
    """Everything that a training changes, all of it on device.

    The random keys of Linen are not part of it: they follow from the seed and the step,
    so that a resumed training draws what an uninterrupted one would have drawn. The
    streams of NNX are, and go on from what was saved.

    Attributes:
        step: Updates made so far, int32 scalar.
        params: The parameters; of NNX, the `nnx.State` of its Params.
        model_state: The other collections, such as "batch_stats"; of NNX, all other
            state as "state", its random streams included.
        opt_state: What the optimizer keeps.
    """

    step: jax.Array
    params: Variables
    model_state: Variables
    opt_state: Any

    @property
    def variables(self) -> Variables:
        """What the forward pass needs; of Linen, as its `apply` takes it."""
        return {"params": self.params, **self.model_state}
