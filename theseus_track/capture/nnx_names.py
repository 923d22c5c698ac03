"""The names that NNX modules carry while they are traced.

A module does not know its place in the model, and every NNX transformation builds
it anew, so that its identity is lost. A static attribute is not: it rides in the
graph definition, and in the pytree structure, through split and merge, `nnx.scan`,
`nnx.remat`, `nnx.jit`, `nnx.vmap`, `jax.checkpoint` and `jax.lax.scan`.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import jax
from flax import nnx

__all__ = [
    "clone",
    "copied",
    "graph_nodes",
    "is_node",
    "name",
    "names_of",
    "state_of",
    "unname",
]

_ATTRIBUTE = "_theseus_names"


class _Names:
    """Names from the root down, equal to all others.

    Structures that differ in nothing but the place must stay equal, or `tree.map`
    over two blocks would fail when they are named. JAX may then take one traced
    body for both blocks; `Discoverer` sees that, and traces them apart.
    """

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[str, ...]) -> None:
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Names)

    def __hash__(self) -> int:
        return hash(_ATTRIBUTE)


def is_node(value: object) -> bool:
    """Tell whether a value is a module, a variable or another part of NNX's graph."""
    return isinstance(value, nnx.Pytree | nnx.Variable)


def graph_nodes(tree: Any) -> list[Any]:
    """List the outermost graph nodes in a pytree."""
    try:
        leaves = jax.tree.leaves(tree, is_leaf=is_node)
    except (TypeError, ValueError):
        # JAX cannot flatten a dict whose keys cannot be sorted; NNX cannot either.
        return []
    return [leaf for leaf in leaves if is_node(leaf)]


def clone(tree: Any) -> Any:
    """Copy the graph nodes in a pytree, without names; they share what they shared."""
    nodes = graph_nodes(tree)
    if not nodes:
        return tree
    copies: list[Any] = nnx.merge(*nnx.split(nodes, graph=True), copy=True)
    unname(copies)
    fresh = iter(copies)
    return jax.tree.map(
        lambda leaf: next(fresh) if is_node(leaf) else leaf, tree, is_leaf=is_node
    )


def copied(tree: Any) -> Any:
    """Copy graph nodes with their arrays, and the other arrays of a pytree."""
    graphdef, state = nnx.split(graph_nodes(tree), graph=True)
    copies: list[Any] = nnx.merge(graphdef, jax.tree.map(_copy, state))
    fresh = iter(copies)
    return jax.tree.map(
        lambda leaf: next(fresh) if is_node(leaf) else _copy(leaf),
        tree,
        is_leaf=is_node,
    )


def _copy(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, jax.Array) else leaf


def state_of(tree: Any) -> Any:
    """Return what the graph nodes in a pytree hold, as a pytree of arrays."""
    return nnx.to_pure_dict(nnx.state(graph_nodes(tree), graph=True))


def names_of(module: nnx.Module) -> tuple[str, ...] | None:
    """Return a module's names from the root down; None if it was given none."""
    names = vars(module).get(_ATTRIBUTE)
    return None if names is None else names.parts


def name(root: nnx.Module, parts: tuple[str, ...] = ()) -> list[nnx.Module]:
    """Name a module and all below it as the parameter tree does; return them.

    Names that are there already stay. A module at several places has the first, as
    in the parameter tree.
    """
    named = []
    for path, module in nnx.iter_modules(root, graph=True):
        if _ATTRIBUTE not in vars(module):
            names = _Names((*parts, *map(str, path)))
            # Past NNX's own check: a name changes no state, at whatever trace level.
            object.__setattr__(module, _ATTRIBUTE, names)
            named.append(module)
    return named


def unname(nodes: Iterable[Any]) -> None:
    """Take the names off graph nodes and all modules below them."""
    for node in nodes:
        for module in _modules(node):
            vars(module).pop(_ATTRIBUTE, None)


def _modules(node: Any) -> Iterator[nnx.Module]:
    for _, part in nnx.iter_graph(node, graph=True):
        if isinstance(part, nnx.Module):
            yield part
