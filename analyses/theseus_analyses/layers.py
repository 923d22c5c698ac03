"""The rows of figures and tables by layer, those of scanned stacks included."""

import operator
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

__all__ = ["by_head", "by_layer"]


def by_layer(values: Mapping[str, Any], *, axes: int) -> dict[str, Any]:
    """Give every layer of a scanned stack a row of its own.

    Args:
        values: What `plot` gets: path -> pytree of arrays. The arrays of a path in a
            scanned stack, and in a stack in a stack, have axes of layers in front.
        axes: How many axes the arrays have where there is no stack, >= 0.

    Returns:
        The same for plain paths; "blocks/attn (2)" for layer 2 of a stack.
    """
    rows: dict[str, Any] = {}
    for path, value in values.items():
        first = jax.tree.leaves(value)[0]
        if first.ndim <= axes:
            rows[path] = value
            continue
        for layer in range(len(first)):
            taken = jax.tree.map(operator.itemgetter(layer), value)
            rows |= by_layer({f"{path} ({layer})": taken}, axes=axes)
    return rows


def by_head(rows: Mapping[str, Mapping[str, np.ndarray]]) -> list[dict[str, Any]]:
    """List numbers of attention heads, one row a head.

    Args:
        rows: Layer -> name -> numbers, [head]; as `by_layer` returns them.
    """
    return [
        {"layer": path, "head": head}
        | {name: float(numbers[head]) for name, numbers in row.items()}
        for path, row in rows.items()
        for head in range(len(next(iter(row.values()))))
    ]
