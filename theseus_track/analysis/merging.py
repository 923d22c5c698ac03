"""The values of one analysis on two batches, merged into one."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from theseus_track.errors import BadInput
from theseus_track.records import dumps, join_tree, loads, split_tree

if TYPE_CHECKING:
    from theseus_track.analysis.values import Entry

__all__ = ["Arrays", "merged"]

# The arrays of a value and its flags: one for each conditional path.
Arrays = tuple[tuple[Any, ...], tuple[Any, ...]]

Tree = Any


def merged(entry: "Entry", one: Arrays, two: Arrays) -> Arrays:
    """Merge what one analysis has of two batches, by its `merge(a, b)`.

    A call in a branch counts only where the branch was taken: in both batches, then
    they are merged; in one of them, then its value is kept; in none, then the value
    stays the zeros of the first. That holds for each path, and each iteration of the
    loops around it, by itself. A value that `combine` made of several calls counts as
    a whole, where all of them were taken.

    Args:
        entry: What is known of the analysis.
        one: The arrays and flags of the first batch.
        two: Those of the second.

    Returns:
        The arrays; and the flags, true where the merged value counts.

    Raises:
        BadInput: When `merge` returned another structure than `analyze`; or, where
            branches hold the calls, other shapes.
    """
    values = [join_tree(loads(entry.structure), leaves) for leaves, _ in (one, two)]
    join: Callable[[Tree, Tree], Tree] | None
    join = getattr(entry.analysis, "merge", None)
    joined = values[0] if join is None else _joined(entry, join, *values)
    if not entry.conditional:
        return _leaves(joined), one[1]
    chosen: list[Any] = []
    taken = [
        dict(zip(entry.conditional, flags, strict=True)) for _, flags in (one, two)
    ]
    for both, a, b, path in _parts(entry, joined, *values):
        own = [_flag(flags, path) for flags in taken]
        leaves = zip(*map(_leaves, (both, a, b)), strict=True)
        chosen += [_chosen(entry, *each, *own) for each in leaves]
    # Of a value that counts as a whole, the flags of the batch that it came from.
    whole = None if _apart(entry) else _flag(taken[1], None)
    flags = (
        jnp.logical_or(a, b if whole is None else whole)
        for a, b in zip(one[1], two[1], strict=True)
    )
    return tuple(chosen), tuple(flags)


def _joined(
    entry: "Entry", join: Callable[[Tree, Tree], Tree], one: Tree, two: Tree
) -> Tree:
    # jax.tree.map, the natural way to write a merge, sorts the keys of dicts.
    joined = _in_order_of(one, join(one, two))
    structure, _ = split_tree(joined, lambda node, _: node)
    if dumps(structure) != entry.structure:
        raise BadInput(
            f"merge of {entry.name} returned another structure than analyze: "
            f"{dumps(structure):.80} instead of {entry.structure:.80}. Return "
            "the same dicts, lists and tuples."
        )
    return joined


def _apart(entry: "Entry") -> bool:
    """Tell whether each path has its part of the value."""
    return not hasattr(entry.analysis, "combine") and not entry.analysis.EDITS


def _parts(entry: "Entry", *trees: Tree) -> Iterator[tuple[Any, ...]]:
    """Split values into what has a flag of its own; the last item is the path."""
    if not _apart(entry):
        yield (*trees, None)
    elif len(entry.paths) == 1 and entry.paths != tuple(_keys(trees[0])):
        yield (*trees, entry.paths[0])
    else:
        for path in entry.paths:
            yield (*(tree[path] for tree in trees), path)


def _keys(tree: Tree) -> Sequence[str]:
    return list(tree) if isinstance(tree, dict) else []


def _flag(taken: dict[str, Any], path: str | None) -> Any:
    """Return the flag of a path, None where no branch holds it; or of all together."""
    if path is not None:
        return taken.get(path)
    return jnp.stack([jnp.all(flag) for flag in taken.values()]).all()


def _chosen(entry: "Entry", both: Any, a: Any, b: Any, left: Any, right: Any) -> Any:
    if left is None:
        return both
    if jnp.shape(both) != jnp.shape(a):
        raise BadInput(
            f"merge of {entry.name} turned shape {jnp.shape(a)} into "
            f"{jnp.shape(both)}. Its call is in a branch, so that either batch may "
            "have no value: return arrays of the shapes that analyze returns."
        )
    left, right = (
        jnp.reshape(flag, jnp.shape(flag) + (1,) * (jnp.ndim(a) - jnp.ndim(flag)))
        for flag in (left, right)
    )
    return jnp.where(left & right, both, jnp.where(right, b, a))


def _leaves(tree: Tree) -> tuple[Any, ...]:
    return tuple(leaf for _, leaf in split_tree(tree, lambda node, _: node)[1])


def _in_order_of(first: Tree, joined: Tree) -> Tree:
    """Return `joined` with the keys of its dicts in the order that `first` has."""
    if isinstance(first, dict) and isinstance(joined, dict):
        if first.keys() != joined.keys():
            return joined
        return {key: _in_order_of(first[key], joined[key]) for key in first}
    pairs = isinstance(first, list | tuple) and isinstance(joined, type(first))
    if not pairs or len(first) != len(joined):
        return joined
    each = [_in_order_of(*pair) for pair in zip(first, joined, strict=True)]
    return each if isinstance(joined, list) else tuple(each)
