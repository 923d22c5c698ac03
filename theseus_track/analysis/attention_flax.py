"""How to look into the attention layers that Flax itself has, Linen and NNX."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import nnx

from theseus_track.analysis.heads import Heads, repeat_groups
from theseus_track.errors import BadInput

__all__ = ["linen_heads", "nnx_heads"]


class _Recorder:
    """An attention function of Flax that also keeps what it was called with."""

    def __init__(self, attend: Callable[..., jax.Array]) -> None:
        self.attend = attend
        self.seen: dict[str, jax.Array] = {}

    def function(self) -> Callable[..., jax.Array]:
        """Return it with the signature of the original, by which Flax calls it."""

        @functools.wraps(self.attend)
        def record(
            query: jax.Array, key: jax.Array, value: jax.Array, **options: Any
        ) -> jax.Array:
            self.seen = {"query": query, "key": key, "value": value}
            self.seen["weights"] = self._weights(query, key, value, options)
            return self.attend(query, key, value, **options)

        return record

    def _weights(
        self, query: jax.Array, key: jax.Array, value: jax.Array, options: Any
    ) -> jax.Array:
        """Return [..., query, head, key], whatever the attention function is.

        Attention is linear in the values, so that with one-hot values it returns its
        weights. In pieces as wide as the values: some functions accept no other.
        """
        keys, depth = value.shape[-3], value.shape[-1]
        pieces = -(-keys // depth)
        one_hot = jnp.eye(keys, pieces * depth, dtype=value.dtype)
        one_hot = one_hot.reshape(keys, pieces, 1, depth).swapaxes(0, 1)
        one_hot = jnp.broadcast_to(
            jnp.expand_dims(one_hot, tuple(range(1, value.ndim - 2))),
            (pieces, *value.shape),
        )

        def taken(piece: jax.Array) -> jax.Array:
            return self.attend(query, key, piece, **options)

        weights = jnp.moveaxis(jax.vmap(taken)(one_hot), 0, -2)
        return weights.reshape(*weights.shape[:-2], pieces * depth)[..., :keys]

    def heads(self, out: jax.Array) -> Heads:
        """Return what was seen, with one batch axis."""
        flat = {
            name: array.reshape(-1, *array.shape[-3:])
            for name, array in self.seen.items()
        }
        count = flat["query"].shape[-2]
        return Heads(
            query=flat["query"],
            key=repeat_groups(flat["key"], count),
            value=repeat_groups(flat["value"], count),
            weights=flat["weights"].swapaxes(1, 2),
            out=out,
        )


def _refuse_cache(decodes: bool | None) -> None:
    if decodes:
        raise BadInput(
            "An attention layer that decodes with a cache of keys sees one token at a "
            "time. Analyse a forward pass over the whole text, with decode=False."
        )


# A layer drops none of its weights where one looks at them.
_PLAIN = {"deterministic": True, "sow_weights": False}


def _options(inputs: Mapping[str, Any], *dropped: str) -> dict[str, Any]:
    return {name: inputs[name] for name in inputs if name not in dropped} | _PLAIN


def linen_heads(layer: nn.MultiHeadDotProductAttention, inputs: Any) -> Heads:
    """Look into `flax.linen.MultiHeadDotProductAttention` and its subclasses."""
    _refuse_cache(layer.decode)
    recorder = _Recorder(layer.attention_fn)
    alone = layer.clone(parent=None, attention_fn=recorder.function())
    alone.apply(layer.variables, **_options(inputs, "dropout_rng"))
    return recorder.heads(layer.variables["params"]["out"]["kernel"])


def nnx_heads(layer: nnx.MultiHeadAttention, inputs: Any) -> Heads:
    """Look into `flax.nnx.MultiHeadAttention`, grouped queries included."""
    decode = inputs["decode"]
    _refuse_cache(layer.decode if decode is None else decode)
    recorder = _Recorder(layer.attention_fn)
    # The layer is a copy of `analyze`'s own.
    before, layer.attention_fn = layer.attention_fn, recorder.function()
    try:
        layer(**_options(inputs, "rngs"))
    finally:
        layer.attention_fn = before
    return recorder.heads(layer.out.kernel[...])
