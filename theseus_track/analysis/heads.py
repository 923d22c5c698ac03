"""What one attention layer computed, whatever its class: Heads."""

from dataclasses import dataclass

import flax.linen as nn
import jax
import jax.numpy as jnp

from theseus_track.errors import BadInput

__all__ = ["Heads", "repeat_groups"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """What one attention layer computed in one call, head by head, on device.

    Made by an adapter; `batch` is one axis, whatever the layer's own leading axes.
    Grouped keys and values are repeated, so that every query head has its own.

    Attributes:
        query: After any normalisation and rotation, [batch, query, head, depth].
        key: Likewise, [batch, key, head, depth].
        value: [batch, key, head, depth]; its depth may differ from the query's.
        weights: How much each query attends to each key, before dropout,
            [batch, head, query, key]; each row sums to 1.
        out: The output projection of each head, [head, depth, feature]; None where
            the layer has none that is linear.
    """

    query: jax.Array
    key: jax.Array
    value: jax.Array
    weights: jax.Array
    out: jax.Array | None = None

    @classmethod
    def of(
        cls,
        query: jax.Array,
        key: jax.Array,
        value: jax.Array,
        *,
        mask: jax.Array | None = None,
        bias: jax.Array | None = None,
        scale: float | None = None,
        out: jax.Array | None = None,
    ) -> "Heads":
        """Compute the weights of scaled dot-product attention.

        softmax(query key^T * scale + bias) over the keys that the mask leaves
        (Vaswani et al., 2017, "Attention Is All You Need", equation 1), in float32.

        Args:
            query: [batch, query, head, depth].
            key: [batch, key, head or group, depth]; the number of heads is a
                multiple of the number of groups.
            value: [batch, key, head or group, depth].
            mask: True where a query may attend, broadcastable to
                [batch, head, query, key]. A row without any gets zeros.
            bias: Added to the scores, broadcastable to [batch, head, query, key].
            scale: Multiplies the scores; default 1/sqrt(depth).
            out: The output projection, [head, depth, feature].

        Raises:
            BadInput: If the heads are no multiple of the groups.
        """
        heads = query.shape[-2]
        key, value = (repeat_groups(each, heads) for each in (key, value))
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        wide = (each.astype(jnp.float32) for each in (query, key))
        scores = jnp.einsum("bqhd,bkhd->bhqk", *wide) * scale
        if bias is not None:
            scores = scores + bias
        if mask is None:
            weights = nn.softmax(scores)
        else:
            weights = jax.nn.softmax(scores, where=jnp.broadcast_to(mask, scores.shape))
        return cls(query=query, key=key, value=value, weights=weights, out=out)

    def writes(self) -> jax.Array:
        """Return what each head adds to the output, before the projection's bias.

        Returns:
            [batch, query, head, feature]; summed over heads and with the bias it is
            the layer's output, where nothing is dropped (Elhage et al., 2021, "A
            Mathematical Framework for Transformer Circuits").

        Raises:
            BadInput: If the adapter gives no output projection.
        """
        if self.out is None:
            raise BadInput(
                "The adapter of this attention layer gives no output projection, so "
                "what each head writes is unknown. Give Heads(out=[head, depth, "
                "feature])."
            )
        mixed = jnp.einsum("bhqk,bkhd->bqhd", self.weights, self.value)
        return jnp.einsum("bqhd,hdf->bqhf", mixed, self.out)


def repeat_groups(grouped: jax.Array, heads: int) -> jax.Array:
    """Give every query head its own keys: [batch, key, head, depth]."""
    groups = grouped.shape[-2]
    if heads % groups:
        raise BadInput(
            f"{heads} query heads are no multiple of {groups} key heads. Grouped "
            "attention repeats each key head for the same number of query heads."
        )
    return jnp.repeat(grouped, heads // groups, axis=-2)
