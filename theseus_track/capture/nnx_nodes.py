"""Graph nodes among the arguments of a function, as a pytree that is traced purely."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import jax
from flax import nnx

from theseus_track.capture.nnx_names import graph_nodes, is_node, name, unname
from theseus_track.capture.opened import Opened

__all__ = ["Nodes", "opened", "split_nodes"]


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


def opened(fn: Callable[..., Any]) -> Opened:
    """Open a function that holds graph nodes which it was given before.

    Those of `nnx.cached_partial` and `functools.partial` are arguments like others,
    not state that a function closes over.
    """
    if isinstance(fn, functools.partial) and graph_nodes((fn.args, fn.keywords)):
        return Opened(fn.func, fn.args, fn.keywords, functools.partial)
    code = getattr(fn, "__code__", None)
    # Flax 0.12 does not tell; the test of a watched cached partial pins these names.
    if code is not None and code.co_name == "cache_args_wrapper":
        held = inspect.getclosurevars(fn).nonlocals
        return Opened(held["f"], held["cached_args"], {}, nnx.cached_partial)
    return Opened(fn)
