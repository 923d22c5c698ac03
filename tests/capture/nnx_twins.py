"""The NNX twins of the Linen models: one set of weights, under every transformation.

`transformed(name)` gives a model and a function of it; all of them compute what the
blocks of `plain()` compute one after the other. `rows()` is what a target's calls
see, computed by hand from the weights.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

LAYERS = 3
WIDTH = 4


class Attn(nnx.Module):
    """The target: a layer with a parameter and an output that is not its input."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.dense = nnx.Linear(WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x: Any, scale: float = 2.0) -> Any:
        return nnx.tanh(self.dense(x) * scale)


class Block(nnx.Module):
    """A residual block around the target."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.attn = Attn(rngs)

    def __call__(self, x: Any) -> Any:
        return x + self.attn(x)


class Unrolled(nnx.Module):
    """Blocks one after the other, each called by a function that may transform it."""

    def __init__(self, rngs: nnx.Rngs, call: Any = Block.__call__) -> None:
        self.blocks = nnx.List([Block(rngs) for _ in range(LAYERS)])
        self.call = call

    def __call__(self, x: Any) -> Any:
        for block in self.blocks:
            x = self.call(block, x)
        return x


class Stacked(nnx.Module):
    """The same blocks as one, with a leading axis in its parameters."""

    def __init__(self, rngs: nnx.Rngs, over: Any) -> None:
        self.blocks = Block(rngs)
        self.over = over

    def __call__(self, x: Any) -> Any:
        return self.over(self.blocks, x)


def run(block: Block, x: Any) -> Any:
    """Call a block."""
    return block(x)


def split_remat(block: Block, x: Any) -> Any:
    """Call a block, rebuilt from its state under `jax.checkpoint`."""
    graphdef, state = nnx.split(block)

    @jax.checkpoint
    def inner(state: Any, x: Any) -> Any:
        return nnx.merge(graphdef, state, copy=True)(x)

    return inner(state, x)


def split_scan(blocks: Block, x: Any) -> Any:
    """Scan over the states of blocks with plain JAX."""
    graphdef, state = nnx.split(blocks)

    def body(x: Any, state: Any) -> tuple[Any, None]:
        return nnx.merge(graphdef, state, copy=True)(x), None

    return jax.lax.scan(body, x, state)[0]


def tree_scan(blocks: Block, x: Any) -> Any:
    """Scan over blocks as over any other pytree."""
    return jax.lax.scan(lambda x, block: (block(x), None), x, blocks)[0]


def scanned(call: Any) -> Any:
    """Scan over blocks with NNX."""
    return nnx.scan(call, in_axes=(0, nnx.Carry), out_axes=nnx.Carry)


CALLS: dict[str, Any] = {
    "plain": run,
    "remat": nnx.remat(run),
    "nnx.jit": nnx.jit(run),
    "jit of remat": nnx.jit(nnx.remat(run)),
    "checkpoint of merge": split_remat,
}
SCANS: dict[str, Any] = {
    "scan": scanned(run),
    "scan of remat": scanned(nnx.remat(run)),
    "lax.scan of merge": split_scan,
    "lax.scan of the tree": tree_scan,
    "scan of checkpoint": scanned(split_remat),
}
UNROLLED = tuple(CALLS)
SCANNED = tuple(SCANS)


def batch() -> Any:
    """Return a fixed input, [example, feature]."""
    return jnp.linspace(-1.0, 1.0, 2 * WIDTH).reshape(2, WIDTH)


@functools.cache
def weights() -> list[tuple[Any, Any]]:
    """Return kernel and bias of each layer's target, on the host."""
    model: Any = Unrolled(nnx.Rngs(0))
    return [
        (np.asarray(b.attn.dense.kernel[...]), np.asarray(b.attn.dense.bias[...]) + 0.1)
        for b in model.blocks
    ]


def _fill(attn: Any, kernel: Any, bias: Any) -> None:
    attn.dense.kernel.set_value(jnp.asarray(kernel))
    attn.dense.bias.set_value(jnp.asarray(bias))


def transformed(name: str) -> Any:
    """Return a model under a transformation, with the weights of `weights`."""
    if name in CALLS:
        model = Unrolled(nnx.Rngs(0), CALLS[name])
        for block, pair in zip(model.blocks, weights(), strict=True):
            _fill(block.attn, *pair)
        return model
    stacked = Stacked(nnx.Rngs(0), SCANS[name])
    _fill(stacked.blocks.attn, *(np.stack(w) for w in zip(*weights(), strict=True)))
    return stacked


@functools.cache
def rows() -> list[dict[str, Any]]:
    """Layer by layer, the target's input, output and sum of weights, by hand."""
    x, found = np.asarray(batch()), []
    for kernel, bias in weights():
        y = np.tanh((x @ kernel + bias) * 2)
        found.append({"x": x, "y": y, "again": y, "w": kernel.sum()})
        x = x + y
    return found
