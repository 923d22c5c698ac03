"""The mesh axes over which a value differs inside `shard_map`, a part of its type."""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp

from theseus_track.capture.primitives import varying

__all__ = ["vary"]


def vary(array: Any, axes: Iterable[str]) -> Any:
    """Say of an array that it may differ over these axes too."""
    array = jnp.asarray(array)
    missing = frozenset(axes) - varying(jax.typeof(array))
    if not missing:
        return array
    return jax.lax.pcast(array, tuple(sorted(missing)), to="varying")
