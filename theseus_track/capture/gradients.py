"""Gradients with respect to what a call inside a function returns."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from theseus_track.capture.discover import discover
from theseus_track.capture.edit import edit
from theseus_track.capture.paths import Path
from theseus_track.capture.program import read_arguments
from theseus_track.capture.rules import Change
from theseus_track.errors import UnreachedCall, UnsupportedProgram, describe_unknown

__all__ = ["grad_at"]


def grad_at(
    fn: Callable[..., Any], path: str, *, name: str | None = None
) -> Callable[..., Any]:
    """Make a function that returns a gradient with respect to a call's output.

    Args:
        fn: A function or a `jax.jit` object that returns a scalar, such as a loss.
        path: Of the call. Without a number it stands for all calls of that layer, and
            the gradient is the sum of theirs; "attn#1" is the second one alone.
        name: An input of the call, to differentiate with respect to that instead.

    Returns:
        A function with the signature of `fn` that returns the gradient, in the
        structure of the output; leaves that are no floating arrays have None. State
        that `fn` changes in its arguments stays as it was.

    Raises:
        UnreachedCall: At the call, when the function makes no such call.
        UnsupportedProgram: At the call, when the layer runs in a loop or `vmap`, so
            that there is one output for each iteration.

    Example:
        >>> import flax.linen as nn, jax, jax.numpy as jnp
        >>> from theseus_track.capture import grad_at
        >>> model = nn.Sequential([nn.Dense(3), nn.Dense(2)])
        >>> x = jnp.ones((1, 4))
        >>> variables = model.init(jax.random.key(0), x)
        >>> loss = lambda variables, x: 3 * model.apply(variables, x).sum()
        >>> grad_at(loss, "layers_1")(variables, x).tolist()
        [[3.0, 3.0]]
    """
    parsed = Path.parse(path)

    @functools.wraps(fn, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        calls = discover(fn, *args, methods=(parsed.method,), **kwargs)
        stacked = str(parsed.stacked)
        if stacked not in calls:
            raise UnreachedCall(describe_unknown("call", path, calls))
        call = calls[stacked]
        if call.axes and not parsed.layers:
            raise UnsupportedProgram(
                f"{path!r} runs in {', '.join(call.axes)}, once for each element; a "
                "gradient is that of one output. Unroll the loop to look at a layer."
            )
        if name is not None and name not in call.inputs:
            raise UnreachedCall(describe_unknown("input", name, call.inputs))
        place = call.output if name is None else call.inputs[name]
        with read_arguments(args, kwargs) as arguments:

            def value(nudge: Any) -> Any:
                inner, named = arguments.restore(arguments.arrays)
                rule = Change(_nudged, nudge, name=name)
                return edit(fn, {path: rule})(*inner, **named)

            return jax.grad(value)(jax.tree.map(_zeros, place))

    return gradient


def _zeros(leaf: Any) -> Any:
    floating = jnp.issubdtype(leaf.dtype, jnp.inexact)
    return jnp.zeros(leaf.shape, leaf.dtype) if floating else None


def _nudged(change: Change, value: Any) -> Any:
    return jax.tree.map(lambda x, y: x if y is None else x + y, value, change.value)
