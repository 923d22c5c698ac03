"""Getting the program of a function, plain or jitted."""

import contextlib
import functools
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import jax

from theseus_track.capture.frameworks import nnx_in_use
from theseus_track.capture.opened import Opened
from theseus_track.errors import ClosedOverState

__all__ = [
    "Arguments",
    "Program",
    "copied",
    "explained",
    "node_state",
    "opened",
    "read_arguments",
    "trace",
]


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call, split into arrays and what passes through untouched.

    Attributes:
        arrays: What the program takes, in order.
        restore: From arrays in the same order to the (args, kwargs) of the call.
        key: Makes a hashable that is equal for calls expected to trace alike.
        leave: From the restored (args, kwargs) after a call, and what it returned, to
            what the program hands out.
        finish: From what was handed out to what the call returns. NNX's graph nodes
            among the caller's arguments are brought to their state after the call.
        peek: As `finish`, but the caller's graph nodes stay as they are.
    """

    arrays: list[Any]
    restore: Callable[[list[Any]], tuple[tuple[Any, ...], dict[str, Any]]]
    key: Callable[[], Hashable]
    leave: Callable[[tuple[Any, ...], dict[str, Any], Any], Any]
    finish: Callable[[Any], Any]
    peek: Callable[[Any], Any]


@dataclass(frozen=True)
class Program:
    """A traced function.

    Attributes:
        closed: The program, from the arrays of the arguments to those of the output.
        restore: From the program's results to what `Arguments.finish` takes.
    """

    closed: Any  # A jaxpr with its constants; JAX 0.11 has another class for it.
    restore: Callable[[list[Any]], Any]


@contextlib.contextmanager
def read_arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[Arguments]:
    """Split the arguments of a call.

    JAX arrays, abstract ones among them, are what a program takes; every other leaf
    is passed on as it is: numbers, strings, callables, numpy arrays. Graph nodes of
    NNX are split into their state, and merged anew in every trace.

    Yields:
        The arguments, of use inside the block only.
    """
    if not _has_nodes((args, kwargs)):
        yield _arguments((args, kwargs), _PLAIN)
        return
    from theseus_track.capture import nnx_nodes  # noqa: PLC0415 - it imports flax.nnx

    with nnx_nodes.split_nodes(args, kwargs) as nodes:
        yield _arguments(nodes.pure, nodes)


@contextlib.contextmanager
def explained(fn: Callable[..., Any]) -> Iterator[None]:
    """Raise what NNX does not explain, while a function is traced, in our words.

    Raises:
        ClosedOverState: When the function changes a node that it was not given.
    """
    try:
        yield
    except Exception as error:
        if not nnx_in_use():
            raise
        from theseus_track.capture import nnx_closures  # noqa: PLC0415 - as above

        if text := nnx_closures.closed_over(error, fn):
            raise ClosedOverState(text) from error
        raise


def opened(fn: Callable[..., Any]) -> Opened:
    """Tell a function from the graph nodes of NNX that a partial gave it."""
    if not nnx_in_use():
        return Opened(fn)
    from theseus_track.capture import nnx_nodes  # noqa: PLC0415 - it imports flax.nnx

    return nnx_nodes.opened(fn)


def copied(tree: Any) -> Any:
    """Copy the arrays of a pytree, and NNX's graph nodes in it with theirs."""
    if _has_nodes(tree):
        from theseus_track.capture import nnx_names  # noqa: PLC0415 - as above

        return nnx_names.copied(tree)
    return jax.tree.map(lambda x: x.copy() if isinstance(x, jax.Array) else x, tree)


def node_state(tree: Any) -> Any:
    """Return what NNX's graph nodes in a pytree hold, as a pytree of arrays."""
    if not _has_nodes(tree):
        return ()
    from theseus_track.capture import nnx_names  # noqa: PLC0415 - as above

    return nnx_names.state_of(tree)


class _Bridge(Protocol):
    """How the arguments of a call become a pytree without graph nodes, and back."""

    def merge(self, pure: Any) -> tuple[tuple[Any, ...], dict[str, Any]]: ...
    def leave(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any: ...
    def finish(self, left: Any) -> Any: ...
    def peek(self, left: Any) -> Any: ...


class _Plain:
    """Arguments that are such a pytree already."""

    def merge(self, pure: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args, kwargs = pure
        return args, kwargs

    def leave(self, _args: tuple[Any, ...], _kwargs: dict[str, Any], out: Any) -> Any:
        return out

    def finish(self, left: Any) -> Any:
        return left

    peek = finish


_PLAIN = _Plain()


def _has_nodes(tree: Any) -> bool:
    if not nnx_in_use():
        return False
    from theseus_track.capture import nnx_names  # noqa: PLC0415 - it imports flax.nnx

    return bool(nnx_names.graph_nodes(tree))


def _arguments(pure: Any, bridge: _Bridge) -> Arguments:
    leaves, tree = jax.tree.flatten(pure)
    places = [i for i, leaf in enumerate(leaves) if _is_array(leaf)]

    def restore(arrays: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        merged = list(leaves)
        for place, array in zip(places, arrays, strict=True):
            merged[place] = array
        return bridge.merge(jax.tree.unflatten(tree, merged))

    def key() -> Hashable:
        return (tree, *map(_leaf_key, leaves))

    return Arguments(
        arrays=[leaves[place] for place in places],
        restore=restore,
        key=key,
        leave=bridge.leave,
        finish=bridge.finish,
        peek=bridge.peek,
    )


def trace(fn: Callable[..., Any], arguments: Arguments) -> Program:
    """Trace a function; the arrays of its output are the program's results."""
    outputs: dict[str, Any] = {}

    def flat(*arrays: Any) -> list[Any]:
        args, kwargs = arguments.restore(list(arrays))
        left = arguments.leave(args, kwargs, fn(*args, **kwargs))
        leaves, outputs["tree"] = jax.tree.flatten(left)
        # Only what is no array may outlive the trace: the rest are tracers.
        outputs["rest"] = [None if _is_array(leaf) else leaf for leaf in leaves]
        outputs["places"] = [i for i, leaf in enumerate(leaves) if _is_array(leaf)]
        return [leaves[place] for place in outputs["places"]]

    with explained(fn):
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
