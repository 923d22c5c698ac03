"""How alike the representations of a model's blocks are."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from theseus_analyses.residual import ResidualAnalysis
from theseus_track.analysis import analysis

__all__ = ["RepresentationSimilarity", "linear_cka"]

TINY = 1e-30
"""Keeps the similarity of constant representations finite (0), in float32."""


def linear_cka(x: jax.Array, y: jax.Array) -> jax.Array:
    """Compute linear centred kernel alignment.

    ||Y^T X||_F^2 / (||X^T X||_F ||Y^T Y||_F) of centred X and Y (Kornblith et al.,
    2019, "Similarity of Neural Network Representations Revisited", section 3).

    Args:
        x: [example, feature], float32.
        y: [example, feature], of as many examples; another width is allowed.

    Returns:
        Between 0 and 1, a scalar: 1 for representations that are equal up to a
        rotation and a scale.
    """
    x, y = (each - each.mean(axis=0) for each in (x, y))
    norms = jnp.linalg.norm(x.T @ x) * jnp.linalg.norm(y.T @ y)
    return ((y.T @ x) ** 2).sum() / jnp.maximum(norms, TINY)


@analysis("theseus/representation_similarity")
class RepresentationSimilarity(ResidualAnalysis):
    """Ask which blocks say the same, by linear CKA between their outputs.

    How to read it: a bright square on the diagonal is a group of blocks that change
    little; a block that differs from all others does something of its own.

    Cost: a product [feature, token] x [token, feature] for each pair of blocks.
    Traps: few tokens make everything look alike (Nguyen et al., 2021): TOKENS should
    be well above the number of features.

    Attributes:
        TOKENS: How many tokens of the batch are compared, >= 2.
    """

    TOKENS = 1024

    def analyze(self, layer: Any, inputs: Any) -> jax.Array:
        """Return tokens of the block's output, [token, feature], float32."""
        output = self.after(inputs)
        flat = output.reshape(-1, output.shape[-1]).astype(jnp.float32)
        return flat[: self.TOKENS]

    def combine(self, values: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        """Return the similarity of every pair, [block, block], float32."""
        every = [
            layer
            for value in values.values()
            for layer in value.reshape(-1, *value.shape[-2:])
        ]
        rows = [jnp.stack([linear_cka(x, y) for y in every]) for x in every]
        return {"cka": jnp.stack(rows)}

    def plot(self, values: Mapping[str, np.ndarray]) -> object:
        """Draw block by block."""
        return self.heatmap(
            values["cka"],
            vmin=0,
            vmax=1,
            square=True,
            title="Linear CKA between blocks",
            xlabel="Block",
            ylabel="Block",
        )
