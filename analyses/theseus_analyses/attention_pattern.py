"""Where each head of an attention layer looks, token by token."""

from typing import Any

import jax
import numpy as np

from theseus_track.analysis import (
    AnalysisBase,
    analysis,
    attention_heads,
    is_attention,
    last,
)

__all__ = ["AttentionPattern"]


@analysis("theseus/attention_pattern")
class AttentionPattern(AnalysisBase):
    """Ask which tokens each head reads from.

    The weights softmax(QK^T/sqrt(d)) of the first sample (Vaswani et al., 2017,
    "Attention Is All You Need", equation 1), before dropout, as the layer itself
    computes them: its masks, rotations and grouped queries are in them.

    How to read it: one panel a head, one row a token; a row says where that token
    looks and sums to 1 over all keys. A diagonal one below the main one is a
    previous-token head; a bright first column is an attention sink; a stripe that
    starts where the text repeats is an induction head.

    Cost: the weights of one layer once more; returns 4 bytes a cell.
    Traps: where a token looks is not what it takes: the values may be small there. A
    crop shows the first TOKENS keys only, so that its rows may sum to less than 1.

    Attributes:
        TARGET: Attention layers of Flax, and classes with an `attention_adapter`.
        TOKENS: How many queries and keys are kept, >= 1.
    """

    TARGET = is_attention
    UNORDERED = ("head",)
    TOKENS = 64

    select = last

    def analyze(self, layer: Any, inputs: Any) -> jax.Array:
        """Return the first sample's weights, [head, query, key]."""
        weights = attention_heads(layer, inputs).weights
        return weights[0, :, : self.TOKENS, : self.TOKENS]

    def plot(self, values: np.ndarray) -> object:
        """Draw one panel for each head, on one scale; of a stack its last layer."""
        while values.ndim > 3:
            values = values[-1]
        return self.heatmap(
            values,
            title="Attention, one panel for each head",
            xlabel="Attended token",
            ylabel="Token",
        )
