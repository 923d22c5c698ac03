"""Where the first NaN or infinity of a forward pass comes from."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from theseus_analyses.targets import any_module
from theseus_track.analysis import AnalysisBase, analysis

__all__ = ["NonfiniteOrigin"]


@analysis("theseus/nonfinite_origin")
class NonfiniteOrigin(AnalysisBase):
    """Ask which module was the first to return something that is not finite.

    Counts the elements that are NaN or infinite in the inputs and in the output of
    every call. The origin is the first call in program order, the innermost where
    calls are nested, with finite inputs and an output that is not.

    How to read it: the origin names the module; its parameters are not finite
    already, or its own computation overflows. No origin is good news.

    Cost: one pass over what every module returns; returns 8 bytes a call.
    Traps: masks of minus infinity among the inputs count as not finite there.
    """

    TARGET = any_module

    def select(self, paths: list[str]) -> list[str]:
        """Look at every call of every module."""
        return paths

    def analyze(self, layer: Any, inputs: Any) -> jax.Array:
        """Return [of inputs, of output], how many are not finite, int32."""
        return jnp.stack([_count(dict(inputs)), _count(inputs.output)])

    def plot(self, values: Mapping[str, np.ndarray]) -> object:
        """Return the origin, and every call that returned something not finite."""
        counts = {path: row.reshape(-1, 2).sum(axis=0) for path, row in values.items()}
        bad = {path: row for path, row in counts.items() if row[1]}
        causes = [path for path, row in bad.items() if not row[0]]
        # A call around the origin has finite inputs too, and comes before it.
        inner = [
            path
            for path in causes
            if not any(_inside(other, path) for other in bad if other != path)
        ]
        origin = next(iter(inner or bad), None)
        table = [
            {"module": path, "inputs": int(row[0]), "output": int(row[1])}
            for path, row in bad.items()
        ]
        return {"origin": {"module": origin}, "calls": table}


def _count(tree: Any) -> jax.Array:
    floats = (
        leaf
        for leaf in jax.tree.leaves(tree)
        if jnp.issubdtype(getattr(leaf, "dtype", jnp.int32), jnp.inexact)
    )
    counts = [(~jnp.isfinite(leaf)).sum(dtype=jnp.int32) for leaf in floats]
    return jnp.stack(counts).sum() if counts else jnp.int32(0)


def _inside(path: str, outer: str) -> bool:
    return outer == "" or path.startswith(f"{outer}/")
