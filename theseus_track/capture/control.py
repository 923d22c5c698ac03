"""Rules for the primitives of control flow: scan, while and cond."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import JaxprEqn

from theseus_track.capture.paths import Layers
from theseus_track.capture.primitives import read_cond, read_scan, read_while
from theseus_track.capture.rule import (
    Evaluator,
    Flags,
    Found,
    Keep,
    Kept,
    Loop,
    Rule,
    Want,
)
from theseus_track.capture.vary import vary

__all__ = ["COND", "SCAN", "WHILE"]


def _find_scan(evaluator: Evaluator, eqn: JaxprEqn) -> tuple[Found, ...]:
    scan = read_scan(eqn)
    length = scan.length
    return tuple(
        replace(
            found,
            axes=(f"scan{length}", *found.axes),
            leaves=tuple(
                jax.ShapeDtypeStruct((length, *leaf.shape), leaf.dtype)
                for leaf in found.leaves
            ),
            loops=(
                Loop(id(eqn), length, 0),
                *(replace(loop, axis=loop.axis + 1) for loop in found.loops),
            ),
            valid_shape=(
                None if found.valid_shape is None else (length, *found.valid_shape)
            ),
        )
        for found in evaluator.find(scan.body[0])
    )


def _run_scan(
    evaluator: Evaluator, eqn: JaxprEqn, args: Sequence[Any], keep: Keep, flags: Flags
) -> tuple[list[Any], list[Kept]]:
    scan = read_scan(eqn)
    jaxpr, consts = scan.body
    width, first = scan.carry, scan.consts
    fixed, init, rows = args[:first], args[first : first + width], args[first + width :]

    wanted = _wanted(evaluator.find(jaxpr), keep)
    inside = tuple(tuple(want.entered for want in wants) for wants in keep)
    some = [want.here is not None for _, want in wanted]

    def body(state: Any, row: tuple[Any, list[Any]]) -> tuple[Any, Any]:
        (carry, held), (number, items) = state, row
        open_here = [
            _flag(want.here, number, flag)
            for (_, want), flag in zip(wanted, flags, strict=True)
        ]
        outputs, kept = evaluator.evaluate(
            jaxpr, consts, [*fixed, *carry, *items], inside, open_here
        )
        new = iter(held)
        held = [
            _stored(next(new), value, want.here, number)
            for value, (_, want) in zip(kept, wanted, strict=True)
            if want.here is not None
        ]
        stacked = [value for value, one in zip(kept, some, strict=True) if not one]
        return (outputs[:width], held), (outputs[width:], stacked)

    # Values of some iterations ride in the carry: stacked, all would be allocated.
    rooms = [
        _blank(found.taken(want.entered.layers), rows=_room(want.here))
        for (found, want), one in zip(wanted, some, strict=True)
        if one
    ]
    numbers = jnp.arange(scan.length, dtype=jnp.int32) if any(some) else None
    (carry, held), (results, stacked) = jax.lax.scan(
        body,
        (list(init), rooms),
        (numbers, list(rows)),
        length=scan.length,
        reverse=scan.reverse,
        unroll=scan.unroll,
    )
    taken, whole = iter(held), iter(stacked)
    return [*carry, *results], [next(taken if one else whole) for one in some]


def _wanted(found: Sequence[Found], keep: Keep) -> list[tuple[Found, Want]]:
    """Pair each wanted value with its tap, in program order."""
    pairs = zip(found, keep, strict=True)
    return [(one, want) for one, wants in pairs for want in wants]


def _flag(layers: Layers, number: Any, outer: Any) -> Any:
    """Say whether an iteration is one of those wanted."""
    if layers is None:
        return outer
    wanted = (layers,) if isinstance(layers, int) else (layers.start, layers.stop - 1)
    inside = (wanted[0] <= number) & (number <= wanted[-1])
    return inside if outer is None else outer & inside


def _room(layers: Layers) -> tuple[int, ...]:
    return (len(layers),) if isinstance(layers, range) else ()


def _stored(room: Kept, value: Kept, layers: Layers, number: Any) -> Kept:
    """Put the value of an iteration into its place, if it is one of those wanted."""
    inside = _flag(layers, number, None)

    def put(old: Any, new: Any) -> Any:
        if not isinstance(layers, range):
            return jnp.where(inside, new, old)
        # Not an update in place: on a mesh with explicit axes its types would differ.
        rows = jnp.arange(layers.start, layers.stop, dtype=jnp.int32) == number
        return jnp.where(_over(rows, old), new[None], old)

    stored: Kept = jax.tree.map(put, room, value)
    return stored


def _find_while(evaluator: Evaluator, eqn: JaxprEqn) -> tuple[Found, ...]:
    loop = read_while(eqn)
    condition = evaluator.find(loop.condition[0])
    body = evaluator.find(loop.body[0])
    return (
        *(
            replace(found, blocked=found.blocked or "the condition of a while loop")
            for found in condition
        ),
        *(replace(found, valid_shape=found.valid_shape or ()) for found in body),
    )


def _run_while(
    evaluator: Evaluator, eqn: JaxprEqn, args: Sequence[Any], keep: Keep, flags: Flags
) -> tuple[list[Any], list[Kept]]:
    loop = read_while(eqn)
    condition, condition_consts = loop.condition
    body, body_consts = loop.body
    first, second = loop.condition_consts, loop.body_consts
    fixed, rest = args[:first], args[first:]
    own, init = rest[:second], rest[second:]
    # Taps of the condition come first and are never kept: they are blocked.
    skipped = len(evaluator.find(condition))
    nothing, inside = keep[:skipped], keep[skipped:]

    def proceed(state: tuple[list[Any], list[Kept]]) -> Any:
        inner = [*fixed, *state[0]]
        return evaluator.evaluate(condition, condition_consts, inner, nothing, ())[0][0]

    def once(state: tuple[list[Any], list[Kept]]) -> tuple[list[Any], list[Kept]]:
        carry, before = state
        inner = [*own, *carry]
        outputs, kept = evaluator.evaluate(body, body_consts, inner, inside, flags)
        return outputs, [_newest(*pair) for pair in zip(before, kept, strict=True)]

    blanks = [
        _unreached(found.taken(want.layers))
        for found, want in _wanted(evaluator.find(body), inside)
    ]
    outputs, kept = jax.lax.while_loop(proceed, once, (list(init), blanks))
    return outputs, kept


def _newest(before: Kept, now: Kept) -> Kept:
    """Keep the last value that was reached, over the iterations of a loop."""
    if now.valid is None:
        return Kept(now.leaves, jnp.logical_or(before.valid, True))
    return Kept(
        [
            jnp.where(_over(now.valid, new), new, old)
            for new, old in zip(now.leaves, before.leaves, strict=True)
        ],
        before.valid | now.valid,
    )


def _over(flag: Any, value: Any) -> Any:
    """Give a flag the trailing axes that it needs to choose between values."""
    return flag.reshape(flag.shape + (1,) * (value.ndim - flag.ndim))


def _unreached(found: Found) -> Kept:
    """Make the value that stands for a tap that was not reached."""
    return _blank(replace(found, valid_shape=found.valid_shape or ()))


def _blank(found: Found, *, rows: tuple[int, ...] = ()) -> Kept:
    """Make zeros in the form of a value, or of several as rows."""
    valid = found.valid_shape
    zeros = Kept(
        [jnp.zeros((*rows, *leaf.shape), leaf.dtype) for leaf in found.leaves],
        None if valid is None else jnp.zeros((*rows, *valid), bool),
    )
    blank: Kept = jax.tree.map(lambda leaf: vary(leaf, found.vary), zeros)
    return blank


def _find_cond(evaluator: Evaluator, eqn: JaxprEqn) -> tuple[Found, ...]:
    return tuple(
        replace(found, valid_shape=found.valid_shape or ())
        for jaxpr, _ in read_cond(eqn).branches
        for found in evaluator.find(jaxpr)
    )


def _run_cond(
    evaluator: Evaluator, eqn: JaxprEqn, args: Sequence[Any], keep: Keep, flags: Flags
) -> tuple[list[Any], list[Kept]]:
    index, *operands = args
    branches = read_cond(eqn).branches
    counts = [len(evaluator.find(jaxpr)) for jaxpr, _ in branches]
    blanks = [
        found.taken(want.layers)
        for found, want in _wanted(_find_cond(evaluator, eqn), keep)
    ]

    def rebuilt(number: int) -> Callable[..., tuple[list[Any], list[Kept]]]:
        jaxpr, consts = branches[number]
        start = sum(counts[:number])
        own = keep[start : start + counts[number]]
        before = sum(map(len, keep[:start]))
        after = before + sum(map(len, own))

        def branch(*inner: Any) -> tuple[list[Any], list[Kept]]:
            given = flags[before:after]
            outputs, kept = evaluator.evaluate(jaxpr, consts, inner, own, given)
            reached = [
                Kept(leaves, vary(True, found.vary) if valid is None else valid)
                for (leaves, valid), found in zip(
                    kept, blanks[before:after], strict=True
                )
            ]
            rest = (blanks[:before], blanks[after:])
            left, right = ([_unreached(found) for found in part] for part in rest)
            return outputs, [*left, *reached, *right]

        return branch

    outputs, kept = jax.lax.switch(
        index, [rebuilt(number) for number in range(len(branches))], *operands
    )
    return outputs, kept


SCAN = Rule(_find_scan, _run_scan)
WHILE = Rule(_find_while, _run_while)
COND = Rule(_find_cond, _run_cond)
