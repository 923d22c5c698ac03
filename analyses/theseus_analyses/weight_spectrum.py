"""The singular values of weight matrices."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen, nnx

from theseus_analyses.layers import by_layer
from theseus_track.analysis import AnalysisBase, analysis

__all__ = ["WeightSpectrum"]


@analysis("theseus/weight_spectrum")
class WeightSpectrum(AnalysisBase):
    """Ask how many directions a weight matrix uses, and how strongly.

    The singular values s_i of the kernel, the largest first; the stable rank, (sum
    s_i^2) / s_1^2 (Rudelson and Vershynin, 2007), is between 1 and the smaller side.

    How to read it: a line that falls steeply is a matrix of low rank; a first value
    that runs away from the others in training goes before instability.

    Cost: one singular value decomposition a matrix; returns 4 bytes a value. It does
    not depend on the data.
    Traps: the kernel of a convolution is taken as [everything else, output].

    Attributes:
        TARGET: Layers of Linen and NNX with a kernel.
    """

    TARGET = (
        linen.Dense,
        linen.DenseGeneral,
        linen.Conv,
        nnx.Linear,
        nnx.LinearGeneral,
        nnx.Conv,
    )

    def select(self, paths: list[str]) -> list[str]:
        """Look at every such layer."""
        return paths

    def analyze(self, layer: Any, inputs: Any) -> jax.Array:
        """Return the singular values, descending, [value], float32."""
        if isinstance(layer, linen.Module):
            kernel = layer.variables["params"]["kernel"]
        else:
            kernel = layer.kernel[...]
        matrix = kernel.reshape(-1, kernel.shape[-1]).astype(jnp.float32)
        return jnp.linalg.svd(matrix, compute_uv=False)

    def plot(self, values: Mapping[str, np.ndarray]) -> object:
        """Draw one line a matrix, on a logarithmic scale; list norms and ranks."""
        rows = by_layer(values, axes=1)
        figure = self.line(
            x=np.concatenate([np.arange(1, row.size + 1) for row in rows.values()]),
            y=np.concatenate(list(rows.values())),
            hue=np.repeat(list(rows), [row.size for row in rows.values()]),
            xlabel="Index",
            ylabel="Singular value",
        )
        table = [
            {
                "layer": path,
                "spectral_norm": float(row[0]),
                "frobenius_norm": float(np.linalg.norm(row)),
                "stable_rank": float((row.astype(np.float64) ** 2).sum() / row[0] ** 2)
                if row[0] > 0
                else 0.0,
            }
            for path, row in rows.items()
        ]
        return {"spectrum": figure, "matrices": table}
