"""The NNX twin of the small Trainer: the same layers, data and loss."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import nnx

from tests.jobs.small import Outputs, Small


class Hidden(nnx.Module):
    """A dense layer with batch statistics and dropout."""

    def __init__(self, size: int, rngs: nnx.Rngs) -> None:
        self.dense = nnx.Linear(size, 8, rngs=rngs)
        self.norm = nnx.BatchNorm(8, momentum=0.9, rngs=rngs)
        self.drop = nnx.Dropout(0.2, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.drop(nnx.relu(self.norm(self.dense(x))))


class Net(nnx.Module):
    """Two hidden layers and an output."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.hidden = nnx.List([Hidden(3, rngs), Hidden(8, rngs)])
        self.last = nnx.Linear(8, 1, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        for layer in self.hidden:
            x = layer(x)
        return self.last(x)


class SmallNNX(Small):
    """Learns the sum of three numbers."""

    MODEL: ClassVar[Any] = Net

    def loss(
        self, model: Any, batch: dict[str, jax.Array], *, train: bool
    ) -> tuple[jax.Array, dict[str, jax.Array]]:
        """Return the squared error and the largest error."""
        error = model(batch["x"]) - batch["y"]
        return (error**2).mean(), {"largest": jnp.abs(error).max()}


class HiddenOutputs(Outputs):
    """What every hidden layer returns."""

    NAME = "outputs"
    TARGET: ClassVar[Any] = Hidden


class SmallNNXWithAnalysis(SmallNNX):
    """SmallNNX, and looks at its layers."""

    ANALYSIS = (HiddenOutputs,)
