"""A model and a Trainer that are small enough to train within a test."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from theseus_track.analysis import AnalysisBase
from theseus_track.jobs import Trainer
from theseus_track.store import Run, Store


class Hidden(nn.Module):
    """A dense layer with batch statistics and dropout."""

    @nn.compact
    def __call__(self, x: jax.Array, train: bool = False) -> jax.Array:
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(nn.Dense(8)(x))
        return nn.Dropout(0.2)(nn.relu(x), deterministic=not train)


class Net(nn.Module):
    """Two hidden layers and an output."""

    @nn.compact
    def __call__(self, x: jax.Array, train: bool = False) -> jax.Array:
        for index in range(2):
            x = Hidden(name=f"hidden_{index}")(x, train)
        return nn.Dense(1)(x)


@dataclasses.dataclass
class SmallConfig:
    """Short enough for tests; logs everything."""

    steps: int = 6
    batch_size: int = 4
    learning_rate: float = 1e-2
    log_every: int = 1
    eval_every: int = 2
    eval_batches: int = 2
    checkpoint_every: int = 3


class Small(Trainer):
    """Learns the sum of three numbers."""

    MODEL = Net
    CONFIG: ClassVar[type | None] = SmallConfig

    def batches(self, split: str) -> Iterator[dict[str, np.ndarray]]:
        """Yield random numbers and their sums."""
        rng = np.random.default_rng([self.args.seed, split == "val"])
        while True:
            x = rng.normal(size=(self.args.batch_size, 3)).astype(np.float32)
            yield {"x": x, "y": x.sum(axis=1, keepdims=True)}

    def loss(
        self, model: Net, batch: dict[str, jax.Array], *, train: bool
    ) -> tuple[jax.Array, dict[str, jax.Array]]:
        """Return the squared error and the largest error."""
        error = model(batch["x"], train) - batch["y"]
        return (error**2).mean(), {"largest": jnp.abs(error).max()}


class Outputs(AnalysisBase):
    """What every hidden layer returns."""

    TARGET = Hidden

    def select(self, paths: list[str]) -> list[str]:
        """Choose all of them."""
        return paths

    def analyze(self, layer: Hidden, inputs: Any) -> jax.Array:
        """Return the output."""
        output: jax.Array = inputs.output
        return output

    def plot(self, values: dict[str, np.ndarray]) -> dict[str, float]:
        """Return a table, which costs no drawing."""
        return {path: float(value.mean()) for path, value in values.items()}


class Rare(Outputs):
    """Every second evaluation."""

    EVERY = 2


class Broken(Outputs):
    """An analysis that fails at trace time."""

    def analyze(self, layer: Hidden, inputs: Any) -> jax.Array:
        """Fail."""
        raise ZeroDivisionError("broken on purpose")


class SmallWithAnalysis(Small):
    """Small, and looks at its layers."""

    ANALYSIS = (Outputs,)


def the_run(root: Path) -> Run:
    """Return the only run of a ledger."""
    (run,) = Store(root).runs()
    return run


def series(run: Run, name: str) -> list[tuple[int, float]]:
    """Return (step, value) of a metric; floats compare to the last bit."""
    return [
        (row.step, float(str(row.metrics[name])))
        for row in run.metrics()
        if name in row.metrics
    ]


def same_bits(one: object, two: object) -> bool:
    """Say whether two pytrees hold the same arrays to the last bit."""
    a, b = jax.device_get((one, two))
    pairs = jax.tree.map(lambda x, y: x.tobytes() == y.tobytes(), a, b)
    return bool(jax.tree.all(pairs))
