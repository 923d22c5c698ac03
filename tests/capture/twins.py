"""One Linen model, plain and under every transformation, with one set of weights.

`transformed(name)` gives a model and its variables; all of them compute what
`plain()` computes, so their captured values must agree with the plain ones.
"""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

LAYERS = 3
WIDTH = 4


class Attn(nn.Module):
    """The target: a layer with a parameter and an output that is not its input."""

    @nn.compact
    def __call__(self, x: Any, scale: float = 2.0) -> Any:
        return nn.tanh(nn.Dense(WIDTH)(x) * scale)


class Block(nn.Module):
    """A residual block around the target."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        return x + Attn(name="attn")(x)


class Row(nn.Module):
    """A block as a scan wants it."""

    inner: Any = Block

    @nn.compact
    def __call__(self, x: Any, _: None) -> tuple[Any, None]:
        return self.inner(name="block")(x), None


class Unrolled(nn.Module):
    """Blocks one after the other, of a class that may be transformed."""

    block: Any = Block

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for i in range(LAYERS):
            x = self.block(name=f"blocks_{i}")(x)
        return x


class Scanned(nn.Module):
    """The same blocks in `nn.scan`."""

    inner: Any = Block
    row: Any = Row

    @nn.compact
    def __call__(self, x: Any) -> Any:
        layers = nn.scan(
            self.row,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=LAYERS,
        )
        return layers(self.inner, name="blocks")(x, None)[0]


def batch() -> Any:
    """Return a fixed input, [example, feature]."""
    return jnp.linspace(-1.0, 1.0, 2 * WIDTH).reshape(2, WIDTH)


@functools.cache
def plain() -> tuple[Any, Any]:
    """Return the unrolled model and its variables."""
    model = Unrolled()
    return model, jax.jit(model.init)(jax.random.key(0), batch())


def transformed(name: str) -> tuple[Any, Any]:
    """Return the model under a transformation, with the weights of `plain`."""
    variables = plain()[1]
    params = variables["params"]
    stacked = jax.tree.map(
        lambda *rows: jnp.stack(rows), *(params[f"blocks_{i}"] for i in range(LAYERS))
    )
    scanned = {"params": {"blocks": {"block": stacked}}}
    models: dict[str, tuple[Any, Any]] = {
        "plain": (Unrolled(), variables),
        "remat": (Unrolled(nn.remat(Block)), variables),
        "nn.jit": (Unrolled(nn.jit(Block)), variables),
        "jit of remat": (Unrolled(nn.jit(nn.remat(Block))), variables),
        "scan": (Scanned(), scanned),
        "scan of remat": (Scanned(row=nn.remat(Row)), scanned),
        "scan, remat inside": (Scanned(nn.remat(Block)), scanned),
    }
    return models[name]


UNROLLED = ("plain", "remat", "nn.jit", "jit of remat")
SCANNED = ("scan", "scan of remat", "scan, remat inside")
