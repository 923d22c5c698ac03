"""The identity primitive that carries values beside an output through JAX.

`tap_p` takes the arrays of an output (the carriers) and any number of values, and
returns the carriers. Because the values ride on the output, no JAX effect is
needed: no transformation refuses the primitive, and a program in which nobody
reaps it lowers to the identity.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import JaxprEqn, Primitive, Var
from jax.interpreters import ad, batching, mlir, partial_eval

from theseus_track.capture.sowing import tapped

__all__ = ["MANUAL", "Tag", "attach", "tap", "tap_p"]

Output = TypeVar("Output")

MANUAL = "manual"
"""The owner of the taps that users place themselves."""


@dataclass(frozen=True, eq=False)
class Tag:
    """What a tap stands for; compared by identity, so JAX may cache a traced body.

    Attributes:
        owner: Whose tap it is; a reaper takes only its own.
        label: What the owner wants to know about the place.
        tree: The structure of the tapped value.
        axes: Names of the axes that `vmap` put in front of the value.
    """

    owner: object
    label: Any
    tree: Any
    axes: tuple[str, ...] = ()

    def unflatten(self, leaves: list[Any]) -> Any:
        """Put the leaves of the tapped value together."""
        return jax.tree.unflatten(self.tree, leaves)


tap_p = Primitive("tap")
tap_p.multiple_results = True


def tap(name: str, output: Output, value: object) -> Output:
    """Mark a value for `reap`, or for analyses of `Tapped(name)`, anywhere in JAX code.

    Args:
        name: What the value is called; the same name may be used several times.
        output: What the value rides on: use the returned one instead of it.
        value: A pytree of arrays or numbers.

    Returns:
        The output, unchanged in value.

    Raises:
        TypeError: When the output holds no JAX array, or the value anything else
            than arrays and numbers.

    Example:
        >>> import jax.numpy as jnp
        >>> from theseus_track.capture import reap, tap
        >>> reap(lambda x: tap("doubled", x + 1, 2 * x))(jnp.float32(3))[1]
        {'doubled': Array(6., dtype=float32)}
    """
    leaves, tree = jax.tree.flatten(value)
    arrays = [jnp.asarray(leaf) for leaf in leaves]
    output = attach(output, arrays, Tag(MANUAL, name, tree))
    return cast(Output, tapped(name, output, value))


def attach(output: Output, values: Sequence[Any], tag: Tag) -> Output:
    """Bind a tap on the JAX arrays of an output, leaving its other leaves alone.

    Args:
        output: Any pytree that holds at least one JAX array.
        values: The leaves of the tapped value, in the order of `tag.tree`.
        tag: What the tap stands for.

    Returns:
        The output with its arrays taken through the tap.

    Raises:
        TypeError: When the output holds no JAX array.
    """
    leaves, tree = jax.tree.flatten(output)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]
    if not places:
        raise TypeError(
            f"A tap needs a JAX array to ride on, but the output is {output!r}."
        )
    carriers = tap_p.bind(
        *(leaves[i] for i in places), *values, tag=tag, width=len(places)
    )
    for place, carrier in zip(places, carriers, strict=True):
        leaves[place] = carrier
    return cast(Output, jax.tree.unflatten(tree, leaves))


def _carriers(*args: Any, width: int, **_: Any) -> list[Any]:
    return list(args[:width])


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, tag: Tag | None, width: int
) -> tuple[list[Any], list[Any]]:
    return tap_p.bind(*primals, tag=tag, width=width), list(tangents[:width])


def _transpose(
    cotangents: Sequence[Any], *args: Any, width: int, **_: Any
) -> list[Any]:
    return [*cotangents, *([None] * (len(args) - width))]


def _batch(
    args: Sequence[Any], dims: Sequence[Any], *, tag: Tag | None, width: int
) -> tuple[list[Any], list[Any]]:
    carriers, values = list(args[:width]), list(args[width:])
    value_dims = dims[width:]
    if tag is not None and any(dim is not None for dim in value_dims):
        size = next(
            value.shape[dim]
            for value, dim in zip(values, value_dims, strict=True)
            if dim is not None
        )
        values = [
            _to_front(value, dim, size)
            for value, dim in zip(values, value_dims, strict=True)
        ]
        tag = replace(tag, axes=(f"vmap{size}", *tag.axes))
    return tap_p.bind(*carriers, *values, tag=tag, width=width), list(dims[:width])


def _to_front(value: Any, dim: int | None, size: int) -> Any:
    """Put the mapped axis first; a value that is not mapped gets one.

    All leaves of one value then have the same leading axes, so that one tuple of
    axis names describes them.
    """
    if dim is None:
        return jnp.broadcast_to(value, (size, *np.shape(value)))
    return jnp.moveaxis(value, dim, 0)


def _partial_eval(
    _saveable: Any, unknown: Sequence[bool], instantiated: Sequence[bool], eqn: JaxprEqn
) -> tuple[Any, Any, list[bool], list[bool], list[Var]]:
    """Keep the tap on the forward side of `remat` only.

    The backward pass of a rematerialised function repeats its forward equations.
    Repeating the tap there would count the call twice, so the staged side gets a
    tap without tag and values. (`differentiated=True` is no criterion: under nested
    remat JAX marks the forward side with it too.)
    """
    width = eqn.params["width"]
    if any(unknown):
        known, staged, needed = None, eqn, eqn.invars
    else:
        needed = eqn.invars[:width]
        known, staged = (
            eqn,
            eqn.replace(invars=needed, params={"tag": None, "width": width}),
        )
    residuals = [
        var
        for var, ready in zip(needed, instantiated, strict=False)
        if isinstance(var, Var) and not ready
    ]
    return known, staged, [any(unknown)] * width, [True] * width, residuals


tap_p.def_impl(_carriers)
tap_p.def_abstract_eval(_carriers)
ad.primitive_jvps[tap_p] = _jvp
ad.primitive_transposes[tap_p] = _transpose
batching.primitive_batchers[tap_p] = _batch
partial_eval.partial_eval_jaxpr_custom_rules[tap_p] = _partial_eval
mlir.register_lowering(tap_p, mlir.lower_fun(_carriers, multiple_results=True))
