"""The leaves of a saved tree: their names, shapes and dtypes, without the arrays."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["Leaf", "Name", "Placed", "Reader", "Wanted", "as_keys", "name_of", "place"]

Name = tuple[str, ...]
"""Where a leaf is in its tree, from the root: ("params", "blocks_0", "kernel")."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One stored array.

    Attributes:
        shape: Its shape; of random keys, that of their data.
        dtype: The name of its dtype, such as "bfloat16"; "str" for a text.
        devices: How many devices it was saved from, where that is known.
    """

    shape: tuple[int, ...]
    dtype: str
    devices: int | None = None

    def __str__(self) -> str:
        """Show it as `float32[8, 4]`."""
        return f"{self.dtype}{list(self.shape)}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How one array is to be read.

    Attributes:
        shape: Its shape, that of the stored one.
        dtype: The dtype that it comes out with.
        sharding: Where it goes.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    sharding: jax.sharding.Sharding


Placed = dict[Name, jax.Array]


class Reader(Protocol):
    """Reads one format; made for one item, used once."""

    def leaves(self) -> dict[Name, Leaf]:
        """Return what is stored, in the order of the tree."""

    def read(self, wanted: Mapping[Name, Wanted]) -> Placed:
        """Return these arrays and read no others."""


def name_of(path: tuple[Any, ...]) -> Name:
    """Return the name of a leaf from its JAX key path."""
    return tuple(_step(key) for key in path)


def _step(key: Any) -> str:
    for attribute in ("key", "name", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


def place(read: Callable[[tuple[slice, ...]], np.ndarray], wanted: Wanted) -> jax.Array:
    """Put an array of the host where it is wanted, each device its part.

    Args:
        read: Returns the part of the stored array that a device holds.
        wanted: Its shape, dtype and place.
    """

    def part(index: Any) -> np.ndarray:
        return np.asarray(read(index)).astype(wanted.dtype)

    # Also with several processes, each of which reads the parts of its devices.
    return jax.make_array_from_callback(wanted.shape, wanted.sharding, part)


def as_keys(array: jax.Array, like: Any) -> jax.Array:
    """Return random keys of the kind of `like` from their data; else the array."""
    is_key = jnp.issubdtype(like.dtype, jax.dtypes.prng_key)
    if not is_key or jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        return array
    kinds: list[Any] = []
    # Of shapes alone, JAX says the kind only while tracing.
    jax.eval_shape(lambda keys: kinds.append(jax.random.key_impl(keys)), like)
    keys: jax.Array = jax.random.wrap_key_data(array, impl=kinds[0])
    return keys
