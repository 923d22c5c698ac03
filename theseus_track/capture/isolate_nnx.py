"""NNX: a module as a frame and arrays, and built from them anew."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
from flax import nnx

from theseus_track.capture.nnx_names import clone, graph_nodes, is_node
from theseus_track.capture.observer import LiveCall

__all__ = ["FrozenNode", "NnxFrame", "OpenedNnx", "freeze"]


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True)
class FrozenNode:
    """A graph node among the inputs of a call: its graph and what it holds."""

    graph: nnx.GraphDef[Any]
    state: Any

    def tree_flatten(self) -> tuple[tuple[Any], nnx.GraphDef[Any]]:
        """Split into what it holds and its graph (JAX's protocol)."""
        return (self.state,), self.graph

    @classmethod
    def tree_unflatten(
        cls, graph: nnx.GraphDef[Any], state: tuple[Any]
    ) -> "FrozenNode":
        """Put it together (JAX's protocol)."""
        return cls(graph, *state)


@dataclass(frozen=True, eq=False)
class NnxFrame:
    """An NNX layer without its arrays: its graph."""

    graph: nnx.GraphDef[Any]

    @classmethod
    def of(cls, module: nnx.Module) -> "NnxFrame":
        """Return the frame of a module."""
        return cls(_split(module)[0])

    def open(self, params: Any, state: Any) -> "OpenedNnx":
        """Build the layer anew."""
        parts = [nnx.State(part) for part in (params, state)]
        return OpenedNnx(nnx.merge(self.graph, *parts, copy=True))

    def thaw(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return inputs with containers and graph nodes of their own."""

        def one(leaf: Any) -> Any:
            if not isinstance(leaf, FrozenNode):
                return leaf
            return nnx.merge(leaf.graph, nnx.State(leaf.state), copy=True)

        return _mapped(one, inputs, lambda leaf: isinstance(leaf, FrozenNode))


@dataclass(frozen=True)
class OpenedNnx:
    """A layer built from its frame."""

    layer: Any

    def state(self) -> Any:
        """Return what the layer holds now, but the parameters."""
        return _split(self.layer)[2]


def freeze(call: LiveCall) -> tuple[NnxFrame, dict[str, Any]]:
    """Take a call that has just returned apart.

    Returns:
        The frame; and parameters and state at the entry, the inputs, and the state
        after the call.
    """
    assert call.view is not None
    graph, params, state = _split(call.view.entry)

    def one(leaf: Any) -> Any:
        if not is_node(leaf):
            return leaf
        own, held = nnx.split(leaf, graph=True)
        return FrozenNode(own, nnx.to_pure_dict(held))

    return NnxFrame(graph), {
        "params": params,
        "state": state,
        "inputs": _mapped(one, call.arguments(), is_node),
        # A copy, so that the names that modules carry while traced stay out.
        "after": _split(clone(call.module))[2],
    }


def _split(module: nnx.Module) -> tuple[nnx.GraphDef[Any], Any, Any]:
    parts: Any = nnx.split(module, nnx.Param, ..., graph=True)
    graph, params, rest = parts
    return graph, nnx.to_pure_dict(params), nnx.to_pure_dict(rest)


def _mapped(
    one: Callable[[Any], Any], inputs: dict[str, Any], is_leaf: Callable[[Any], bool]
) -> dict[str, Any]:
    if not graph_nodes(inputs) and is_leaf is is_node:
        return inputs
    return dict(jax.tree.map(one, inputs, is_leaf=is_leaf))
