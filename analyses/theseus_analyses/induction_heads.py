"""Which heads copy: previous-token, duplicate-token and induction scores."""

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

__all__ = ["InductionHeads", "repeated_tokens"]


def repeated_tokens(
    key: jax.Array, *, batch: int, period: int, vocabulary: int
) -> jax.Array:
    """Make the probe batch that `InductionHeads` needs: random tokens, twice.

    Args:
        key: A JAX random key.
        batch: Samples, >= 1.
        period: Tokens before they repeat, >= 2.
        vocabulary: Number of different tokens.

    Returns:
        [batch, 2 * period], int32; the second half equals the first.
    """
    half = jax.random.randint(key, (batch, period), 0, vocabulary)
    return jnp.concatenate([half, half], axis=1)


@analysis("theseus/induction_heads")
class InductionHeads(AnalysisBase):
    """Ask which heads find the earlier occurrence of the text that they read.

    On a text whose second half repeats the first (`repeated_tokens`), three mean
    weights a head: `previous`, on the token before; `duplicate`, on the earlier
    occurrence of the token itself; `induction`, on the token that followed it then
    (Olsson et al., 2022, "In-context Learning and Induction Heads"). The last two are
    over the queries of the second half.

    How to read it: 1 is a perfect head of that kind. Induction appears in training
    together with a previous-token head of an earlier layer, when the loss of late
    tokens drops.

    Cost: the weights of every attention layer once more; returns 12 bytes a head.
    Traps: on any other text the numbers mean nothing: log them of a probe batch made
    by `repeated_tokens`, `run.probe("repeated", batch)`.

    Attributes:
        TARGET: Attention layers of Flax, and classes with an `attention_adapter`.
        PERIOD: Tokens before the text repeats; None: half of the text.
    """

    TARGET = is_attention
    UNORDERED = ("head",)
    PERIOD: int | None = None

    def select(self, paths: list[str]) -> list[str]:
        """Look at every attention layer."""
        return paths

    def analyze(self, layer: Any, inputs: Any) -> dict[str, jax.Array]:
        """Return three scores for each head, each [head], float32."""
        weights = attention_heads(layer, inputs).weights.astype(jnp.float32)
        queries, keys = weights.shape[-2:]
        period = self.PERIOD or queries // 2
        if queries != keys or not 2 <= period < queries:
            raise ValueError(
                f"{queries} queries and {keys} keys with PERIOD {self.PERIOD}: "
                "induction needs self-attention over a text of at least 4 tokens "
                "that repeats after 2 or more of them. See repeated_tokens."
            )
        return {
            "previous": _along(weights, 1, first=1),
            "duplicate": _along(weights, period, first=period),
            "induction": _along(weights, period - 1, first=period),
        }

    def plot(self, values: Mapping[str, Mapping[str, np.ndarray]]) -> object:
        """Draw the induction scores, layer by head, and all of them as a table."""
        table = by_head(by_layer(values, axes=1))
        table.sort(key=lambda row: -row["induction"])
        figure = self.bar(
            x=[f"{row['layer']} {row['head']}" for row in table[:20]],
            y=[row["induction"] for row in table[:20]],
            title="Weight on the token after the earlier occurrence",
            xlabel="Head",
            ylabel="Induction score",
        )
        return {"induction": figure, "heads": table}


def _along(weights: jax.Array, back: int, *, first: int) -> jax.Array:
    """Average the weights of queries from `first` on the key so far back: [head]."""
    queries = jnp.arange(first, weights.shape[-2])
    return weights[:, :, queries, queries - back].mean(axis=(0, 2))
