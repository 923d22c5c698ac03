"""Comparing pytrees to the last bit, and to what fusion may change."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def assert_same(actual, expected):
    """Fail unless two pytrees have one structure and the very same values."""
    structures: list[Any] = [jax.tree.structure(t) for t in (actual, expected)]
    assert structures[0] == structures[1]
    for left, right in zip(
        jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_array_equal(_array(left), _array(right))


def assert_near(actual, expected):
    """Fail unless two pytrees of floats agree within 1e-6 of their largest value.

    That is what an eval step's own outputs keep to in float32: more outputs can change
    how XLA fuses a program, and on which processors that shows differs.
    """
    structures: list[Any] = [jax.tree.structure(t) for t in (actual, expected)]
    assert structures[0] == structures[1]
    for left, right in zip(
        jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True
    ):
        scale = max(float(np.abs(right).max()), 1e-30)
        np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-6 * scale)


def _array(leaf):
    """Return a leaf as numpy; the bits of a PRNG key."""
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)
