"""How long the residual stream is, and what each block adds to it."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from theseus_analyses.residual import ResidualAnalysis
from theseus_track.analysis import analysis

__all__ = ["ResidualNorms"]

TINY = 1e-30
"""Keeps the cosine with a stream of zeros finite (0), in float32."""


@analysis("theseus/residual_norms")
class ResidualNorms(ResidualAnalysis):
    """Ask how much each block changes the residual stream.

    Means over batch and tokens, for each block: `stream`, the Euclidean norm of what
    it leaves; `write`, the norm of what it adds (output - input); `cosine`, between
    what it adds and what it reads.

    How to read it: streams grow with depth; a block whose write is small beside its
    stream does little; a cosine near -1 erases, near 1 amplifies, near 0 adds
    something new.

    Cost: one pass over input and output of every block; returns 12 bytes a block.
    Traps: of a post-norm block (whose output is normalised) the write is no addition.
    """

    def analyze(self, layer: Any, inputs: Any) -> dict[str, jax.Array]:
        """Return three numbers, float32."""
        before, after = (
            stream.astype(jnp.float32)
            for stream in (self.before(inputs), self.after(inputs))
        )
        write = after - before
        norms = [jnp.linalg.norm(each, axis=-1) for each in (before, after, write)]
        inner = (before * write).sum(axis=-1)
        return {
            "stream": norms[1].mean(),
            "write": norms[2].mean(),
            "cosine": (inner / jnp.maximum(norms[0] * norms[2], TINY)).mean(),
        }

    def plot(self, values: Mapping[str, Mapping[str, np.ndarray]]) -> object:
        """Draw norms over depth, and return all numbers as a table."""
        names = {"stream": "Stream after the block", "write": "Written by the block"}
        figure, table = self.over_depth(values, names, ylabel="Mean norm")
        return {"norms": figure, "blocks": table}
