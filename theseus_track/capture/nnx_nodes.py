"""Graph nodes among the arguments of a function, as a pytree that is traced purely."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import jax
from flax import nnx
from flax.errors import TraceContextError

from theseus_track.capture.nnx_names import graph_nodes, is_node, name, unname

__all__ = ["Nodes", "closed_over", "split_nodes"]


class Nodes:
    """The graph nodes of one call; made by `split_nodes`.

    The same steps as in `nnx.jit`, with NNX's own means, so that whatever happens
    to the nodes in the function happens to the caller's as it would there.

    Attributes:
        pure: The (args, kwargs) of the call with each node as its state.
    """

    def __init__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], tag: object
    ) -> None:
        self._tag = tag
        self.pure: Any = nnx.to_tree((args, kwargs), split_fn=_split, ctxtag=tag)

    def merge(self, pure: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Build the nodes for one trace of the function, and name its modules."""
        args, kwargs = nnx.from_tree(
            pure, merge_fn=_merge, is_inner=True, ctxtag=self._tag
        )
        for node in graph_nodes((args, kwargs)):
            if isinstance(node, nnx.Module):
                name(node)
        return args, kwargs

    def leave(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
        """Make a pytree of the function's output and of what became of the nodes."""
        unname(graph_nodes((args, kwargs, out)))
        kept = jax.tree.map(
            lambda leaf: leaf if is_node(leaf) else None,
            (args, kwargs),
            is_leaf=is_node,
        )
        return nnx.to_tree((kept, out), split_fn=_split, ctxtag=self._tag)

    def finish(self, left: Any) -> Any:
        """Update the caller's nodes from what `leave` made; return the output."""
        _, out = nnx.from_tree(left, merge_fn=_merge, is_inner=False, ctxtag=self._tag)
        return out

    @staticmethod
    def peek(left: Any) -> Any:
        """Return the output of what `leave` made; the caller's nodes stay."""
        return nnx.from_tree(left, merge_fn=_merge)[1]


@contextlib.contextmanager
def split_nodes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Nodes]:
    """Split the graph nodes among the arguments of a call.

    Yields:
        The nodes, of use inside the block only.
    """
    tag = object()
    with nnx.update_context(tag):
        yield Nodes(args, kwargs, tag)


def _split(context: Any, _path: Any, _prefix: Any, node: Any) -> Any:
    return nnx.NodeStates.from_split(*context.flatten(node, with_paths=False))


def _merge(context: Any, _path: Any, _prefix: Any, leaf: nnx.NodeStates) -> Any:
    return context.unflatten(leaf.graphdef, *leaf.states)


def closed_over(error: BaseException, fn: Callable[..., Any]) -> str:
    """Say which graph nodes a function closes over, if it failed to change one.

    Returns:
        A sentence; empty if the error is another one.
    """
    if not isinstance(error, TraceContextError):
        return ""
    known = ", ".join(_closed_over(fn)) or "a graph node"
    return (
        f"The function changes the state of what it closes over ({known}); give that "
        "to it as an argument."
    )


def _closed_over(fn: Any) -> list[str]:
    if isinstance(fn, functools.partial):
        given = {f"argument {i}": value for i, value in enumerate(fn.args)}
        return _described({**given, **fn.keywords}) + _closed_over(fn.func)
    fn = inspect.unwrap(fn)
    owner = fn if is_node(fn) else getattr(fn, "__self__", None)
    if not inspect.isfunction(fn := getattr(fn, "__func__", fn)):
        return _described({"self": owner})
    closure = inspect.getclosurevars(fn)
    return _described({"self": owner, **closure.globals, **closure.nonlocals})


def _described(values: dict[str, Any]) -> list[str]:
    return [
        f"{key}: {type(value).__name__}"
        for key, value in values.items()
        if graph_nodes(value)
    ]
