"""The structure of an analysis' value as JSON, apart from its arrays.

A value is nested dicts, lists and tuples with arrays as leaves. The structure is
kept with plain marks (`d` dict, `l` list, `t` tuple, `n` named tuple) and no
Python types, so that a file can never name a class to import.
"""

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from theseus_track.errors import BadInput
from theseus_track.records.strict_json import Json

__all__ = ["host_leaf", "join_tree", "split_tree"]

Leaf = TypeVar("Leaf")


def split_tree(
    value: object, leaf: Callable[[object, str], Leaf]
) -> tuple[Json, list[tuple[str, Leaf]]]:
    """Take the arrays out of a value.

    Args:
        value: Nested dicts (string keys), lists, tuples, named tuples, dataclasses
            (kept as dicts of their fields) and None; everything else is a leaf.
        leaf: Called with each leaf and its path; returns the array, or raises
            BadInput. `host_leaf` is the one for values on the host.

    Returns:
        The structure, in which an integer stands for the leaf of that index, and
        the leaves as (path within the value, array), such as ("0/mean", ...).

    Raises:
        BadInput: When a key is no text or a leaf is refused.
    """
    leaves: list[tuple[str, Leaf]] = []

    def walk(node: object, where: tuple[str, ...]) -> Json:
        if node is None:
            return None
        if isinstance(node, Mapping):
            return {
                "d": {_key(k, where): walk(v, (*where, k)) for k, v in node.items()}
            }
        if isinstance(node, tuple) and hasattr(node, "_fields"):
            fields = zip(node._fields, node, strict=True)
            return {"n": {name: walk(item, (*where, name)) for name, item in fields}}
        if isinstance(node, list | tuple):
            mark = "l" if isinstance(node, list) else "t"
            return {mark: [walk(item, (*where, str(i))) for i, item in enumerate(node)]}
        if dataclasses.is_dataclass(node) and not isinstance(node, type):
            names = [field.name for field in dataclasses.fields(node)]
            return {"d": {n: walk(getattr(node, n), (*where, n)) for n in names}}
        path = "/".join(where)
        leaves.append((path, leaf(node, path)))
        return len(leaves) - 1

    return walk(value, ()), leaves


def join_tree(structure: Json, leaves: Sequence[object]) -> object:
    """Put the arrays back into their structure; the inverse of `split_tree`.

    Args:
        structure: What `split_tree` returned first.
        leaves: The arrays (or whatever stands for them), in the order of `split_tree`.

    Returns:
        The value. Named tuples come back with the same fields, as a new class.

    Raises:
        BadInput: When the structure is malformed or names a leaf that is missing.
    """
    if structure is None:
        return None
    if isinstance(structure, int) and not isinstance(structure, bool):
        if 0 <= structure < len(leaves):
            return leaves[structure]
        raise BadInput(f"The structure names leaf {structure} of {len(leaves)}.")
    if isinstance(structure, dict) and len(structure) == 1:
        ((mark, content),) = structure.items()
        if mark == "d" and isinstance(content, dict):
            return {key: join_tree(item, leaves) for key, item in content.items()}
        if mark == "n" and isinstance(content, dict):
            made = collections.namedtuple("Fields", list(content))  # type: ignore[misc]
            return made(*(join_tree(item, leaves) for item in content.values()))
        if mark in ("l", "t") and isinstance(content, list):
            items = [join_tree(item, leaves) for item in content]
            return items if mark == "l" else tuple(items)
    raise BadInput(f"The structure of a stored value is malformed: {structure!r:.80}.")


def _key(key: object, where: tuple[str, ...]) -> str:
    if isinstance(key, str):
        return key
    raise BadInput(
        f"The key {key!r} at {'/'.join(where) or 'the top'} of a value is no text. "
        "Use string keys in what analyze returns."
    )


def host_leaf(node: object, path: str) -> np.ndarray:
    """Take numpy arrays and numbers as leaves, and refuse everything else.

    Args:
        node: The leaf.
        path: Where it is within the value.

    Returns:
        A numpy array.

    Raises:
        BadInput: When it is no numpy array and no number.
    """
    if isinstance(node, np.ndarray | np.generic | bool | int | float):
        return np.asarray(node)
    raise BadInput(
        f"The leaf {path or 'at the top'} of a value is a {type(node).__name__}, "
        "not an array. Return arrays or numbers."
    )
