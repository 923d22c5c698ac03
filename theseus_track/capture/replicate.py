"""Whole copies of values on every device of a mesh: in a program, and after one."""

import operator
from collections.abc import Iterable
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

__all__ = ["find_mesh", "gathered", "is_readable", "replicated", "settled"]

AnyMesh = Mesh | AbstractMesh

T = TypeVar("T")


def find_mesh(arrays: Iterable[Any]) -> AnyMesh | None:
    """Return the mesh that arrays are placed on, else the context's, else None.

    Args:
        arrays: Concrete or traced; JAX tells the mesh of both.
    """
    meshes = [mesh for mesh in map(_mesh_of, arrays) if mesh is not None]
    if meshes:
        return max(meshes, key=lambda mesh: mesh.size)
    around = jax.sharding.get_abstract_mesh()
    return None if around.empty else around


def replicated(tree: Any, mesh: AnyMesh | None) -> Any:
    """Place a whole copy of each array on every device of a mesh.

    Args:
        tree: A pytree; leaves that are no JAX array are left alone.
        mesh: Used for arrays that do not know theirs; None if there is none.
    """

    def place(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array):
            return leaf
        own = _mesh_of(leaf) or mesh
        return leaf if own is None else _copied(leaf, own)

    return jax.tree.map(place, tree)


def gathered(tree: T) -> T:
    """Make arrays readable that are spread over several processes.

    Where there are such arrays, this is a collective: every process must call it at
    the same point of its program, and from the thread that runs its programs.

    Args:
        tree: A pytree; what this process can read, or is no JAX array, is left alone.

    Returns:
        The same with a whole copy of each spread array on every device that holds a
        part of it.
    """
    leaves, structure = jax.tree.flatten(tree)
    spread = [
        number
        for number, leaf in enumerate(leaves)
        if isinstance(leaf, jax.Array)
        and not leaf.is_fully_addressable
        and not leaf.is_fully_replicated
    ]
    if not spread:
        return tree
    places = [_everywhere(leaves[number]) for number in spread]
    copies = jax.device_put([leaves[number] for number in spread], places)
    for number, copy in zip(spread, copies, strict=True):
        leaves[number] = copy
    whole: T = jax.tree.unflatten(structure, leaves)
    return whole


def is_readable(array: jax.Array) -> bool:
    """Tell whether this process holds an array, whole."""
    return array.is_fully_addressable or (
        array.is_fully_replicated and bool(array.addressable_shards)
    )


def _everywhere(array: jax.Array) -> NamedSharding:
    """Say "whole on every device" of the devices that an array is on."""
    mesh = getattr(array.sharding, "mesh", None)
    if not isinstance(mesh, Mesh):
        devices = sorted(array.sharding.device_set, key=operator.attrgetter("id"))
        mesh = Mesh(np.array(devices), ("all",))
    return NamedSharding(mesh, PartitionSpec())


def settled(value: Any) -> Any:
    """Return an array without a sharding in its type.

    On a mesh with explicit axes the sharding is a part of it, so that the branches
    and carries which take values out would have to agree about it.
    """
    mesh = _mesh_of(value)
    explicit = mesh is not None and AxisType.Explicit in mesh.axis_types
    return _copied(value, mesh) if mesh is not None and explicit else value


def _copied(array: Any, mesh: AnyMesh) -> Any:
    place = NamedSharding(mesh, PartitionSpec())
    # Inside a `shard_map` each shard has its own value; its rule gives it an axis.
    if AxisType.Manual in mesh.axis_types:
        return array
    if AxisType.Explicit in mesh.axis_types:
        array = jax.sharding.reshard(array, place)
    if AxisType.Auto in mesh.axis_types:
        array = jax.lax.with_sharding_constraint(array, place)
    return array


def _mesh_of(array: Any) -> AnyMesh | None:
    sharding = getattr(jax.typeof(array), "sharding", None)
    mesh: AnyMesh | None = getattr(sharding, "mesh", None)
    return None if mesh is None or mesh.empty else mesh
