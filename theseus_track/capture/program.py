"""Getting the program of a function, plain or jitted."""

import functools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr

__all__ = ["Arguments", "Program", "read_arguments", "trace"]


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call, split into arrays and what passes through untouched.

    Attributes:
        arrays: What the program takes, in order.
        restore: From arrays in the same order to the (args, kwargs) of the call.
        key: Makes a hashable that is equal for calls expected to trace alike.
    """

    arrays: list[Any]
    restore: Callable[[list[Any]], tuple[tuple[Any, ...], dict[str, Any]]]
    key: Callable[[], Hashable]


@dataclass(frozen=True)
class Program:
    """A traced function.

    Attributes:
        closed: The program, from the arrays of the arguments to those of the output.
        restore: From the program's results to the function's output.
    """

    closed: ClosedJaxpr
    restore: Callable[[list[Any]], Any]


def read_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    """Split the arguments of a call.

    JAX arrays, abstract ones among them, are what a program takes; every other leaf
    is passed on as it is: numbers, strings, callables, numpy arrays.
    """
    leaves, tree = jax.tree.flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if _is_array(leaf)]

    def restore(arrays: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        merged = list(leaves)
        for place, array in zip(places, arrays, strict=True):
            merged[place] = array
        new_args, new_kwargs = jax.tree.unflatten(tree, merged)
        return new_args, new_kwargs

    def key() -> Hashable:
        return (tree, *map(_leaf_key, leaves))

    return Arguments([leaves[place] for place in places], restore, key)


def trace(fn: Callable[..., Any], arguments: Arguments) -> Program:
    """Trace a function; the arrays of its output are the program's results."""
    outputs: dict[str, Any] = {}

    def flat(*arrays: Any) -> list[Any]:
        args, kwargs = arguments.restore(list(arrays))
        leaves, outputs["tree"] = jax.tree.flatten(fn(*args, **kwargs))
        # Only what is no array may outlive the trace: the rest are tracers.
        outputs["rest"] = [None if _is_array(leaf) else leaf for leaf in leaves]
        outputs["places"] = [i for i, leaf in enumerate(leaves) if _is_array(leaf)]
        return [leaves[place] for place in outputs["places"]]

    closed = jax.make_jaxpr(flat)(*arguments.arrays)
    restore = functools.partial(
        _merge, outputs["tree"], outputs["rest"], outputs["places"]
    )
    return Program(closed, restore)


def _merge(tree: Any, rest: list[Any], places: list[int], arrays: list[Any]) -> Any:
    leaves = list(rest)
    for place, array in zip(places, arrays, strict=True):
        leaves[place] = array
    return jax.tree.unflatten(tree, leaves)


def _is_array(leaf: object) -> bool:
    return isinstance(leaf, jax.Array | jax.ShapeDtypeStruct)


def _leaf_key(leaf: Any) -> Hashable:
    """Return what a leaf contributes to the key; a number only its type.

    A number that changes from call to call, such as a step, must not cost the
    compiled inner functions of an eager call.
    """
    if _is_array(leaf):
        return (leaf.shape, str(leaf.dtype))
    if leaf is None or isinstance(leaf, bool | str | bytes):
        return leaf
    return type(leaf).__qualname__
