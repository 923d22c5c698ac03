"""Statistics of what each selected layer returns, to see drift, death and overflow."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen, nnx

from theseus_analyses.layers import by_layer
from theseus_track.analysis import AnalysisBase, analysis

__all__ = ["ActivationStats"]

TINY = 1e-37
"""Keeps the kurtosis of a constant output finite (0), in float32."""

STATISTICS = (
    "mean",
    "std",
    "rms",
    "min",
    "max",
    "absmax",
    "zero",
    "nonfinite",
    "kurtosis",
)


@analysis("theseus/activation_stats")
class ActivationStats(AnalysisBase):
    """Ask how large and how healthy the outputs of layers are.

    Nine numbers for each call, over all elements of its output: mean, standard
    deviation, root mean square, minimum, maximum, largest magnitude, fraction that
    is zero, fraction that is not finite, and kurtosis (fourth standardised moment,
    Pearson's definition: 3 for a normal distribution). All but the fractions are
    over the finite elements. float32 inside, whatever the layer's dtype.

    How to read it: a row whose `rms` grows with depth step after step is on its
    way to overflow; `zero` near 1 is a dead layer; any `nonfinite` above 0 says
    where NaN begins (the first row that has it); a `kurtosis` in the hundreds says
    that a few features carry everything.

    Cost: one pass over each selected output; returns 36 bytes for each call.
    Traps: a mean over padding counts the padding; the statistics of a layer before
    a nonlinearity differ from those after it.

    Attributes:
        TARGET: Every Dense layer of Linen and Linear layer of NNX; subclass it for
            your own classes.
    """

    TARGET = (linen.Dense, nnx.Linear)
    UNORDERED = ()

    def select(self, paths: list[str]) -> list[str]:
        """Look at every call of TARGET."""
        return paths

    def analyze(self, layer: Any, inputs: Any) -> Any:
        """Return the nine statistics of the call's output, [statistic], float32."""
        leaves = [leaf.ravel() for leaf in jax.tree.leaves(inputs.output)]
        x = jnp.concatenate(leaves).astype(jnp.float32)
        finite = jnp.isfinite(x)
        count = jnp.maximum(finite.sum(), 1)
        clean = jnp.where(finite, x, 0.0)
        mean = clean.sum() / count
        centred = jnp.where(finite, clean - mean, 0.0)
        variance = (centred**2).sum() / count
        fourth = (centred**4).sum() / count
        return jnp.stack(
            [
                mean,
                jnp.sqrt(variance),
                jnp.sqrt((clean**2).sum() / count),
                jnp.where(finite, x, jnp.inf).min(),
                jnp.where(finite, x, -jnp.inf).max(),
                jnp.abs(clean).max(),
                (x == 0).mean(),
                1.0 - finite.mean(),
                fourth / jnp.maximum(variance**2, TINY),
            ]
        )

    def plot(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Draw root mean squares by layer, and return all numbers as a table."""
        rows = by_layer(values, axes=1)
        figure = self.bar(
            x=list(rows),
            y=[float(row[STATISTICS.index("rms")]) for row in rows.values()],
            xlabel="Layer",
            ylabel="Root mean square",
        )
        table = [
            {"layer": path, **dict(zip(STATISTICS, row.tolist(), strict=True))}
            for path, row in rows.items()
        ]
        return {"rms": figure, "statistics": table}
