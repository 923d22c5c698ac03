"""Comparing pytrees to the last bit."""

from typing import Any

import jax
import numpy as np


def assert_same(actual, expected):
    """Fail unless two pytrees have one structure and the very same values."""
    structures: list[Any] = [jax.tree.structure(t) for t in (actual, expected)]
    assert structures[0] == structures[1]
    for left, right in zip(
        jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(left), np.asarray(right))
