"""How many directions the representations of each block use."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from theseus_analyses.residual import ResidualAnalysis
from theseus_track.analysis import analysis

__all__ = ["EffectiveRank"]

TINY = 1e-30
"""Keeps the numbers of a block that returns zeros finite, in float32."""


@analysis("theseus/effective_rank")
class EffectiveRank(ResidualAnalysis):
    """Ask in how many dimensions the tokens really differ, block by block.

    With l_i the eigenvalues of the covariance of the block's outputs over all tokens
    of the batch: `participation`, (sum l)^2 / sum l^2 (Gao et al., 2017, "A theory of
    multineuronal dimensionality"); `entropy_rank`, exp(-sum p log p) with p_i = l_i /
    sum l (Roy and Vetterli, 2007, "The effective rank", equation 1, of the
    covariance); `cosine`, the mean cosine between different tokens, which is the
    anisotropy (Ethayarajh, 2019).

    How to read it: both ranks are between 1 and the smaller of features and tokens;
    a rank that falls towards 1 is a collapse of the representation, a cosine near 1
    says that all tokens point the same way.

    Cost: one eigendecomposition of [feature, feature] a block; returns 12 bytes each.
    Traps: fewer tokens than features bound the rank by the tokens.
    """

    def analyze(self, layer: Any, inputs: Any) -> dict[str, jax.Array]:
        """Return three numbers, float32."""
        output = self.after(inputs)
        x = output.reshape(-1, output.shape[-1]).astype(jnp.float32)
        centred = x - x.mean(axis=0)
        spectrum = jnp.linalg.eigvalsh(centred.T @ centred / len(x)).clip(0)
        shares = spectrum / jnp.maximum(spectrum.sum(), TINY)
        unit = x / jnp.maximum(jnp.linalg.norm(x, axis=-1, keepdims=True), TINY)
        # The sum over all pairs is the squared norm of the sum.
        pairs = (unit.sum(axis=0) ** 2).sum() - (unit**2).sum()
        return {
            "participation": 1 / jnp.maximum((shares**2).sum(), TINY),
            "entropy_rank": jnp.exp(-jax.scipy.special.xlogy(shares, shares).sum()),
            "cosine": pairs / max(len(x) * (len(x) - 1), 1),
        }

    def plot(self, values: Mapping[str, Mapping[str, np.ndarray]]) -> object:
        """Draw both ranks over depth, and return all numbers as a table."""
        names = {"participation": "Participation ratio", "entropy_rank": "Entropy rank"}
        figure, table = self.over_depth(values, names, ylabel="Directions in use")
        return {"ranks": figure, "blocks": table}
