"""How spread the attention of every head is, and how much of it goes nowhere."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from theseus_analyses.layers import by_head, by_layer
from theseus_track.analysis import (
    AnalysisBase,
    analysis,
    attention_heads,
    is_attention,
)

__all__ = ["AttentionEntropy"]


@analysis("theseus/attention_entropy")
class AttentionEntropy(AnalysisBase):
    """Ask whether heads look at one token or at all, and how many only at the first.

    Three numbers a head, over the queries of all samples: `entropy`, the mean of
    -sum_k w_k log w_k in nats (Shannon, 1948); `coherence`, 1 - entropy / log(n) over
    the queries that may attend to n > 1 keys: 0 for a head that spreads evenly, 1
    for one that looks at a single token; `sink`, the mean weight on the first token.

    How to read it: entropies that fall in training are heads that specialise; one
    that falls to 0 in all heads at once goes before a divergence (Zhai et al., 2023,
    "Stabilizing Transformer Training by Preventing Attention Entropy Collapse"). A
    `sink` near 1 is a head that does nothing on most tokens.

    Cost: the weights of every attention layer once more; returns 12 bytes a head.
    Traps: padding counts as a query. A key with weight 0 counts as masked.

    Attributes:
        TARGET: Attention layers of Flax, and classes with an `attention_adapter`.
    """

    TARGET = is_attention
    UNORDERED = ("head",)

    def select(self, paths: list[str]) -> list[str]:
        """Look at every attention layer."""
        return paths

    def analyze(self, layer: Any, inputs: Any) -> dict[str, jax.Array]:
        """Return three numbers for each head, each [head], float32."""
        weights = attention_heads(layer, inputs).weights.astype(jnp.float32)
        entropy = -jax.scipy.special.xlogy(weights, weights).sum(axis=-1)
        keys = (weights > 0).sum(axis=-1)
        free = keys > 1
        spread = entropy / jnp.log(jnp.where(free, keys, 2))
        count = jnp.maximum(free.sum(axis=(0, 2)), 1)
        return {
            "entropy": entropy.mean(axis=(0, 2)),
            "coherence": jnp.where(free, 1 - spread, 0).sum(axis=(0, 2)) / count,
            "sink": weights[..., 0].mean(axis=(0, 2)),
        }

    def plot(self, values: Mapping[str, Mapping[str, np.ndarray]]) -> object:
        """Draw the entropy, layer by head, and return all numbers as a table."""
        rows = by_layer(values, axes=1)
        figure = self.heatmap(
            _padded([row["entropy"] for row in rows.values()]),
            yticklabels=list(rows),
            title="Mean entropy of attention (nats)",
            xlabel="Head",
            ylabel="Layer",
        )
        return {"entropy": figure, "heads": by_head(rows)}


def _padded(rows: list[np.ndarray]) -> np.ndarray:
    """Return [layer, head]; NaN where a layer has fewer heads than another."""
    grid = np.full((len(rows), max(map(len, rows))), np.nan, np.float32)
    for into, row in zip(grid, rows, strict=True):
        into[: len(row)] = row
    return grid
