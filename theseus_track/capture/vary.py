"""The mesh axes over which a value differs inside `shard_map`, a part of its type."""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["vary", "varying"]


def varying(aval: Any) -> frozenset[str]:
    """Name the axes over which an array may differ from shard to shard."""
    kind = getattr(aval, "manual_axis_type", None)
    return frozenset(getattr(kind, "varying", ()))


def vary(array: Any, axes: Iterable[str]) -> Any:
    """Say of an array that it may differ over these axes too."""
    array = jnp.asarray(array)
    missing = frozenset(axes) - varying(jax.typeof(array))
    if not missing:
        return array
    return jax.lax.pcast(array, tuple(sorted(missing)), to="varying")
