"""Which units of a layer never turn on."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen, nnx

from theseus_analyses.layers import by_layer
from theseus_track.analysis import AnalysisBase, analysis

__all__ = ["DeadUnits"]


@analysis("theseus/dead_units")
class DeadUnits(AnalysisBase):
    """Ask how many units are off on everything that they are shown.

    A unit is dead when the output of the layer is at most THRESHOLD on every token
    and sample: after a ReLU it then gives 0 and gets no gradient.

    How to read it: a share that grows in training is capacity lost; all units of a
    layer dying at once is a learning rate that was too high.

    Cost: one maximum over each selected output; returns 4 bytes a unit.
    Traps: select the layers before a ReLU (or GELU, SiLU, where a unit far below 0 is
    nearly off): after other layers negative outputs mean nothing. A small probe
    batch calls rare units dead; `merge` takes several batches together.

    Attributes:
        TARGET: Dense and convolutional layers of Linen and NNX.
        THRESHOLD: At or below it a unit is off.
    """

    TARGET = (linen.Dense, linen.Conv, nnx.Linear, nnx.Conv)
    THRESHOLD = 0.0

    def select(self, paths: list[str]) -> list[str]:
        """Look at every such layer."""
        return paths

    def analyze(self, layer: Any, inputs: Any) -> jax.Array:
        """Return the largest output of each unit, [unit], float32."""
        output: jax.Array = inputs.output
        return output.reshape(-1, output.shape[-1]).max(axis=0).astype(jnp.float32)

    def merge(self, a: Any, b: Any) -> Any:
        """Take the larger of two batches: a unit is dead if it is off in both."""
        return jax.tree.map(jnp.maximum, a, b)

    def plot(self, values: Mapping[str, np.ndarray]) -> object:
        """Draw the share of dead units by layer; list which ones they are."""
        rows = by_layer(values, axes=1)
        dead = {
            path: np.flatnonzero(row <= self.THRESHOLD) for path, row in rows.items()
        }
        sizes = [row.size for row in rows.values()]
        figure = self.bar(
            x=list(dead),
            y=[
                units.size / size
                for units, size in zip(dead.values(), sizes, strict=True)
            ],
            xlabel="Layer",
            ylabel="Share of units that never turn on",
        )
        table = [
            {
                "layer": path,
                "dead": int(units.size),
                "units": size,
                "first": units[:20].tolist(),
            }
            for (path, units), size in zip(dead.items(), sizes, strict=True)
        ]
        return {"share": figure, "units": table}
