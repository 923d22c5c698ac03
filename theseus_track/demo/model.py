"""The demo's model: a small pre-LayerNorm GPT in Flax Linen."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from theseus_track.analysis import Heads, attention_adapter

__all__ = ["GPT", "MLP", "Block", "SelfAttention"]


class SelfAttention(nn.Module):
    """Causal self-attention with several heads.

    Attributes:
        features: Width of the residual stream; a multiple of `heads`.
        heads: Number of heads, >= 1.
        dropout: Share of the output that is dropped while training, in [0, 1).
    """

    features: int
    heads: int
    dropout: float

    def setup(self) -> None:
        """Make the projections; Linen calls this."""
        shape = (3, self.heads, self.features // self.heads)
        self.qkv = nn.DenseGeneral(shape, use_bias=False)
        self.out = nn.DenseGeneral(self.features, axis=(-2, -1))
        self.drop = nn.Dropout(self.dropout)

    def weights(self, x: jax.Array) -> jax.Array:
        """Compute how much each token attends to each earlier one.

        Args:
            x: The layer's input, [batch, token, feature], on device.

        Returns:
            [batch, head, query, key]; each row sums to 1 and is 0 after its query.
        """
        query, key, _ = self.project(x)
        return _attend(query, key)

    def __call__(self, x: jax.Array, deterministic: bool = True) -> jax.Array:
        """Mix every token with those before it: [batch, token, feature], both ways."""
        query, key, value = self.project(x)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", _attend(query, key), value)
        dropped: jax.Array = self.drop(self.out(mixed), deterministic=deterministic)
        return dropped

    def project(self, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return queries, keys and values, each [batch, token, head, depth]."""
        qkv = self.qkv(x)
        return qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]


@attention_adapter(SelfAttention)
def _look(layer: SelfAttention, inputs: Any) -> Heads:
    """Show the analyses of attention what is inside."""
    query, key, value = layer.project(inputs.x)
    causal = jnp.tril(jnp.ones((inputs.x.shape[1],) * 2, bool))
    kernel = layer.out.variables["params"]["kernel"]
    return Heads.of(query, key, value, mask=causal, out=kernel)


class MLP(nn.Module):
    """Two dense layers with a GELU between them, four times as wide inside."""

    features: int
    dropout: float

    def setup(self) -> None:
        """Make the layers; Linen calls this."""
        self.up = nn.Dense(4 * self.features)
        self.down = nn.Dense(self.features)
        self.drop = nn.Dropout(self.dropout)

    def __call__(self, x: jax.Array, deterministic: bool = True) -> jax.Array:
        """Transform every token on its own: [batch, token, feature], both ways."""
        hidden = self.down(nn.gelu(self.up(x)))
        dropped: jax.Array = self.drop(hidden, deterministic=deterministic)
        return dropped


class Block(nn.Module):
    """Attention, then an MLP, each on a normalised copy added to the residual."""

    features: int
    heads: int
    dropout: float

    def setup(self) -> None:
        """Make the layers; Linen calls this."""
        self.norm_attn = nn.LayerNorm()
        self.attn = SelfAttention(self.features, self.heads, self.dropout)
        self.norm_mlp = nn.LayerNorm()
        self.mlp = MLP(self.features, self.dropout)

    def __call__(self, x: jax.Array, deterministic: bool = True) -> jax.Array:
        """Add what attention and MLP found: [batch, token, feature], both ways."""
        x = x + self.attn(self.norm_attn(x), deterministic)
        return x + self.mlp(self.norm_mlp(x), deterministic)


class GPT(nn.Module):
    """A decoder that predicts the next character.

    Attributes:
        vocabulary: Number of different characters.
        context: The longest text it can read, in tokens.
        layers: Number of blocks; they are called blocks_0, blocks_1 and so on.
        features: Width of the residual stream.
        heads: Attention heads a block.
        dropout: Share dropped after the embedding, attention and MLP, in [0, 1).
    """

    vocabulary: int
    context: int
    layers: int
    features: int
    heads: int
    dropout: float

    def setup(self) -> None:
        """Make the layers; Linen calls this."""
        self.token = nn.Embed(self.vocabulary, self.features)
        self.position = nn.Embed(self.context, self.features)
        self.drop = nn.Dropout(self.dropout)
        self.blocks = [
            Block(self.features, self.heads, self.dropout) for _ in range(self.layers)
        ]
        self.norm = nn.LayerNorm()
        self.head = nn.Dense(self.vocabulary, use_bias=False)

    def __call__(self, tokens: jax.Array, deterministic: bool = True) -> jax.Array:
        """Predict the next token at every position.

        Args:
            tokens: Character codes, [batch, token], integers; at most `context` long.
            deterministic: False while training, which turns dropout on.

        Returns:
            Logits, [batch, token, vocabulary], float32.
        """
        positions = jnp.arange(tokens.shape[1])
        x = self.token(tokens) + self.position(positions)[None]
        x = self.drop(x, deterministic=deterministic)
        for block in self.blocks:
            x = block(x, deterministic)
        return self.head(self.norm(x))


def _attend(query: jax.Array, key: jax.Array) -> jax.Array:
    """Return causal attention weights, [batch, head, query, key]."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / query.shape[-1] ** 0.5
    tokens = query.shape[1]
    causal = jnp.tril(jnp.ones((tokens, tokens), bool))
    return nn.softmax(jnp.where(causal[None, None], scores, -jnp.inf))
