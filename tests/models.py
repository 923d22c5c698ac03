"""Small Flax models that several layers' tests look into."""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

WIDTH = 16
VOCABULARY = 17


class Attention(nn.Module):
    """Causal attention of one head with named projections."""

    @nn.compact
    def __call__(self, x: Any, *, scale: float = 1.0) -> Any:
        q, k, v = (nn.Dense(WIDTH, name=name)(x) for name in ("q", "k", "v"))
        scores = scale * q @ k.swapaxes(-1, -2) / WIDTH**0.5
        mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        return nn.softmax(jnp.where(mask, scores, -1e9)) @ v


class Block(nn.Module):
    """Attention and a dropped-out MLP, each added to the residual stream."""

    train: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = x + Attention(name="attn")(nn.LayerNorm()(x))
        h = nn.gelu(nn.Dense(4 * WIDTH, name="up")(nn.LayerNorm()(x)))
        h = nn.Dropout(0.3, deterministic=not self.train)(h)
        return x + nn.Dense(WIDTH, name="down")(h)


class TinyGPT(nn.Module):
    """A language model of a few blocks."""

    layers: int = 2
    train: bool = False

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        x = nn.Embed(VOCABULARY, WIDTH, name="embed")(tokens)
        for i in range(self.layers):
            x = Block(train=self.train, name=f"blocks_{i}")(x)
        return nn.Dense(VOCABULARY, name="head")(x)


class Normed(nn.Module):
    """A classifier with batch statistics and dropout."""

    @nn.compact
    def __call__(self, x: Any, *, train: bool = False) -> Any:
        x = nn.Dense(8, name="first")(x)
        x = nn.BatchNorm(use_running_average=not train, name="norm")(x)
        x = nn.Dropout(0.5, deterministic=not train)(x)
        return nn.Dense(3, name="last")(x)


def tokens(batch: int = 2, length: int = 7) -> Any:
    """Return a fixed batch of token numbers, [batch, token], int32."""
    key = jax.random.key(1)
    return jax.random.randint(key, (batch, length), 0, VOCABULARY)


@functools.cache
def gpt_and_variables(**fields: Any) -> tuple[TinyGPT, Any]:
    """Return a TinyGPT and its variables, made once."""
    model = TinyGPT(**fields)
    return model, jax.jit(model.init)(jax.random.key(0), tokens())
