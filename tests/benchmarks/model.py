"""The model of the benchmarks: a GPT, unrolled or a scanned stack of its blocks."""

import dataclasses
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from theseus_track.demo.model import Block

__all__ = ["GPT", "KINDS", "Sizes", "Step", "loss_of", "make_step", "shapes"]

KINDS = ("plain", "scan", "scan + remat")

Step = Callable[[Any, Any], jax.Array]
"""`(variables, batch) -> loss`, not jitted."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large the model and its batch are."""

    layers: int = 6
    features: int = 256
    heads: int = 4
    context: int = 256
    batch: int = 8
    vocabulary: int = 512


class _Row(Block):
    """A block as a scan wants it."""

    def __call__(self, x: jax.Array, _: Any = None) -> Any:
        return super().__call__(x), None


class GPT(nn.Module):
    """A decoder of one of the three KINDS; all of them compute the same."""

    sizes: Sizes
    kind: str

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        sizes = self.sizes
        x = nn.Embed(sizes.vocabulary, sizes.features, name="token")(tokens)
        x += nn.Embed(sizes.context, sizes.features, name="position")(
            jnp.arange(sizes.context)
        )
        block = (sizes.features, sizes.heads, 0.0)
        if self.kind == "plain":
            for index in range(sizes.layers):
                x = Block(*block, name=f"blocks_{index}")(x)
        else:
            # The second axis lets `capture_intermediates` see into the stack.
            stack = nn.scan(
                nn.remat(_Row, prevent_cse=False) if "remat" in self.kind else _Row,
                variable_axes={"params": 0, "intermediates": 0},
                split_rngs={"params": True},
                length=sizes.layers,
            )
            x, _ = stack(*block, name="blocks")(x, None)
        return nn.Dense(sizes.vocabulary, name="head")(nn.LayerNorm(name="norm")(x))


def make_step(model: GPT) -> Step:
    """Return the eval step of a model: the mean cross-entropy of the next token."""

    def eval_step(variables: Any, batch: Any) -> jax.Array:
        return loss_of(model.apply(variables, batch["tokens"]), batch)

    return eval_step


def loss_of(logits: Any, batch: Any) -> jax.Array:
    """Return the mean cross-entropy of the next token."""
    loss: jax.Array = optax.softmax_cross_entropy_with_integer_labels(
        logits, batch["targets"]
    )
    return loss.mean()


def shapes(model: GPT) -> tuple[Any, Any]:
    """Return variables and a batch as shapes."""
    tokens = jax.ShapeDtypeStruct((model.sizes.batch, model.sizes.context), jnp.int32)
    variables = jax.eval_shape(model.init, jax.random.key(0), tokens)
    return variables, {"tokens": tokens, "targets": tokens}
