"""Gradients with respect to what a call inside a function returns."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr

from theseus_track.capture.discover import discover
from theseus_track.capture.edit import edit
from theseus_track.capture.paths import Path
from theseus_track.capture.primitives import sub_jaxprs
from theseus_track.capture.program import Arguments, read_arguments, trace
from theseus_track.capture.reap import Reaper
from theseus_track.capture.rules import Change
from theseus_track.capture.tap import Tag, attach
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
        UnsupportedProgram: At the call, when `fn` runs the layer in a loop or `vmap`,
            so that there is one output for each iteration. Around the gradient
            function, either may stand.

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
            _check_single(fn, parsed, arguments)

            def value(nudge: Any) -> Any:
                inner, named = arguments.restore(arguments.arrays)
                rule = Change(_nudged, nudge, name=name)
                return edit(fn, {path: rule})(*inner, **named)

            return jax.grad(value)(jax.tree.map(_zeros, place))

    return gradient


def _check_single(fn: Callable[..., Any], path: Path, arguments: Arguments) -> None:
    """Refuse a call in a `vmap` or while loop, which only a marked output tells."""
    owner = object()

    def marked(_layer: Any, _inputs: Any, output: Any) -> Any:
        leaves = [x for x in jax.tree.leaves(output) if isinstance(x, jax.Array)]
        return attach(output, leaves, Tag(owner, path, None))

    jaxpr = trace(edit(fn, {str(path.stacked): marked}), arguments).closed.jaxpr
    reaper = Reaper(owner)
    axes = {axis for one in reaper.find(jaxpr) for axis in one.axes}
    mapped = sorted(axis for axis in axes if axis.startswith("vmap"))
    if mapped:
        raise UnsupportedProgram(
            f"{str(path)!r} runs in {', '.join(mapped)}, once for each element; a "
            "gradient is that of one output. Put the vmap around grad_at's function."
        )
    if "while" in _around(reaper, jaxpr):
        raise UnsupportedProgram(
            f"{str(path)!r} runs in a while loop, through which JAX takes no gradient. "
            "Use jax.lax.scan, or take the loop around grad_at's function."
        )


def _around(reaper: Reaper, jaxpr: Jaxpr) -> Iterator[str]:
    """Name the primitives around the taps of a program."""
    for eqn in jaxpr.eqns:
        for inner in sub_jaxprs(eqn.params):
            if reaper.find(inner):
                yield eqn.primitive.name
                yield from _around(reaper, inner)


def _zeros(leaf: Any) -> Any:
    floating = jnp.issubdtype(leaf.dtype, jnp.inexact)
    return jnp.zeros(leaf.shape, leaf.dtype) if floating else None


def _nudged(change: Change, value: Any) -> Any:
    return jax.tree.map(lambda x, y: x if y is None else x + y, value, change.value)
