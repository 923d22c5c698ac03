"""The rule for `shard_map`: each shard's value, on a leading axis."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
from jax.extend.core import JaxprEqn
from jax.sharding import PartitionSpec

from theseus_track.capture.primitives import ShardMapEqn, read_shard_map
from theseus_track.capture.rule import Evaluator, Flags, Found, Keep, Kept, Rule
from theseus_track.capture.vary import vary

__all__ = ["SHARD_MAP"]


def _axes(shards: ShardMapEqn, found: Found) -> tuple[str, ...]:
    """Name the mesh axes over which a value differs from shard to shard.

    Where JAX does not check (`check_vma=False`), it may differ over all of them.
    """
    names = (name for name in shards.mesh.axis_names if name in shards.manual)
    return tuple(name for name in names if name in found.vary or not shards.checked)


def _find(evaluator: Evaluator, eqn: JaxprEqn) -> tuple[Found, ...]:
    shards = read_shard_map(eqn)
    return tuple(_outside(shards, found) for found in evaluator.find(shards.body[0]))


def _outside(shards: ShardMapEqn, found: Found) -> Found:
    axes = _axes(shards, found)
    rest = found.vary - shards.manual
    if not axes:
        return replace(found, vary=rest)
    count = math.prod(shards.mesh.shape[name] for name in axes)
    valid = found.valid_shape
    return replace(
        found,
        vary=rest,
        axes=(f"shard{count}", *found.axes),
        leaves=tuple(
            jax.ShapeDtypeStruct((count, *leaf.shape), leaf.dtype)
            for leaf in found.leaves
        ),
        loops=tuple(replace(loop, axis=loop.axis + 1) for loop in found.loops),
        valid_shape=None if valid is None else (count, *valid),
    )


def _run(
    evaluator: Evaluator, eqn: JaxprEqn, args: Sequence[Any], keep: Keep, flags: Flags
) -> tuple[list[Any], list[Kept]]:
    shards = read_shard_map(eqn)
    jaxpr, consts = shards.body
    wanted = [
        (found, _axes(shards, found))
        for found, wants in zip(evaluator.find(jaxpr), keep, strict=True)
        for _ in wants
    ]

    def run(given: Flags, *inner: Any) -> tuple[list[Any], list[Kept]]:
        outputs, kept = evaluator.evaluate(jaxpr, consts, inner, keep, given)
        pairs = zip(kept, wanted, strict=True)
        return outputs, [_row(value, axes, shards) for value, (_, axes) in pairs]

    places = [
        _places(found, PartitionSpec(*filter(None, [axes]))) for found, axes in wanted
    ]
    again = jax.shard_map(
        run,
        mesh=shards.mesh,
        in_specs=(PartitionSpec(), *shards.in_specs),
        out_specs=(list(shards.out_specs), places),
        axis_names=shards.manual,
        check_vma=shards.checked,
    )
    outputs, kept = again(list(flags), *args)
    return outputs, kept


def _places(found: Found, spec: PartitionSpec) -> Kept:
    return Kept(
        [spec] * len(found.leaves),
        None if found.valid_shape is None else spec,
    )


def _row(value: Kept, axes: tuple[str, ...], shards: ShardMapEqn) -> Kept:
    """Give a value the axis along which the shards' values are put together."""
    if not axes:
        return value
    names = frozenset(axes) if shards.checked else frozenset()
    row: Kept = jax.tree.map(lambda leaf: vary(leaf, names)[None], value)
    return row


SHARD_MAP = Rule(_find, _run)
