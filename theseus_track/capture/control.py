"""Rules for the primitives of control flow: scan, while and cond."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import JaxprEqn

from theseus_track.capture.rule import Evaluator, Found, Keep, Kept, Rule, opened

__all__ = ["COND", "SCAN", "WHILE"]


def _find_scan(evaluator: Evaluator, eqn: JaxprEqn) -> tuple[Found, ...]:
    length = eqn.params["length"]
    return tuple(
        replace(
            found,
            axes=(f"scan{length}", *found.axes),
            leaves=tuple(
                jax.ShapeDtypeStruct((length, *leaf.shape), leaf.dtype)
                for leaf in found.leaves
            ),
            valid_shape=(
                None if found.valid_shape is None else (length, *found.valid_shape)
            ),
        )
        for found in evaluator.find(opened(eqn.params["jaxpr"])[0])
    )


def _run_scan(
    evaluator: Evaluator, eqn: JaxprEqn, args: Sequence[Any], keep: Keep
) -> tuple[list[Any], list[Kept]]:
    params = eqn.params
    jaxpr, consts = opened(params["jaxpr"])
    width, first = params["num_carry"], params["num_consts"]
    fixed, init, rows = args[:first], args[first : first + width], args[first + width :]

    def body(carry: list[Any], row: list[Any]) -> tuple[list[Any], Any]:
        inner = [*fixed, *carry, *row]
        outputs, kept = evaluator.evaluate(jaxpr, consts, inner, keep)
        return outputs[:width], (outputs[width:], kept)

    carry, (stacked, kept) = jax.lax.scan(
        body,
        list(init),
        list(rows),
        length=params["length"],
        reverse=params["reverse"],
        unroll=params["unroll"],
    )
    return [*carry, *stacked], kept


def _find_while(evaluator: Evaluator, eqn: JaxprEqn) -> tuple[Found, ...]:
    condition = evaluator.find(opened(eqn.params["cond_jaxpr"])[0])
    body = evaluator.find(opened(eqn.params["body_jaxpr"])[0])
    return (
        *(
            replace(found, blocked=found.blocked or "the condition of a while loop")
            for found in condition
        ),
        *(replace(found, valid_shape=found.valid_shape or ()) for found in body),
    )


def _run_while(
    evaluator: Evaluator, eqn: JaxprEqn, args: Sequence[Any], keep: Keep
) -> tuple[list[Any], list[Kept]]:
    params = eqn.params
    condition, condition_consts = opened(params["cond_jaxpr"])
    body, body_consts = opened(params["body_jaxpr"])
    first, second = params["cond_nconsts"], params["body_nconsts"]
    fixed, rest = args[:first], args[first:]
    loop, init = rest[:second], rest[second:]
    # Taps of the condition come first and are never kept: they are blocked.
    skipped = len(evaluator.find(condition))
    nothing, wanted = keep[:skipped], keep[skipped:]

    def proceed(state: tuple[list[Any], list[Kept]]) -> Any:
        inner = [*fixed, *state[0]]
        return evaluator.evaluate(condition, condition_consts, inner, nothing)[0][0]

    def once(state: tuple[list[Any], list[Kept]]) -> tuple[list[Any], list[Kept]]:
        carry, before = state
        outputs, kept = evaluator.evaluate(body, body_consts, [*loop, *carry], wanted)
        return outputs, [_newest(*pair) for pair in zip(before, kept, strict=True)]

    blanks = [
        _blank(found)
        for found, want in zip(evaluator.find(body), wanted, strict=True)
        if want
    ]
    outputs, kept = jax.lax.while_loop(proceed, once, (list(init), blanks))
    return outputs, kept


def _newest(before: Kept, now: Kept) -> Kept:
    """Keep the last value that was reached, over the iterations of a loop."""
    if now.valid is None:
        return Kept(now.leaves, jnp.ones_like(before.valid))
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


def _blank(found: Found) -> Kept:
    """Make the value that stands for a tap that was not reached."""
    return Kept(
        [jnp.zeros(leaf.shape, leaf.dtype) for leaf in found.leaves],
        jnp.zeros(found.valid_shape or (), bool),
    )


def _find_cond(evaluator: Evaluator, eqn: JaxprEqn) -> tuple[Found, ...]:
    return tuple(
        replace(found, valid_shape=found.valid_shape or ())
        for branch in eqn.params["branches"]
        for found in evaluator.find(opened(branch)[0])
    )


def _run_cond(
    evaluator: Evaluator, eqn: JaxprEqn, args: Sequence[Any], keep: Keep
) -> tuple[list[Any], list[Kept]]:
    index, *operands = args
    branches = eqn.params["branches"]
    counts = [len(evaluator.find(opened(branch)[0])) for branch in branches]
    blanks = [
        found
        for found, want in zip(_find_cond(evaluator, eqn), keep, strict=True)
        if want
    ]

    def rebuilt(number: int) -> Callable[..., tuple[list[Any], list[Kept]]]:
        jaxpr, consts = opened(branches[number])
        start = sum(counts[:number])
        own = keep[start : start + counts[number]]
        before = sum(keep[:start])
        after = before + sum(own)

        def branch(*inner: Any) -> tuple[list[Any], list[Kept]]:
            outputs, kept = evaluator.evaluate(jaxpr, consts, inner, own)
            reached = [
                Kept(leaves, jnp.asarray(True) if valid is None else valid)
                for leaves, valid in kept
            ]
            rest = (blanks[:before], blanks[after:])
            left, right = ([_blank(found) for found in part] for part in rest)
            return outputs, [*left, *reached, *right]

        return branch

    outputs, kept = jax.lax.switch(
        index, [rebuilt(number) for number in range(len(branches))], *operands
    )
    return outputs, kept


SCAN = Rule(_find_scan, _run_scan)
WHILE = Rule(_find_while, _run_while)
COND = Rule(_find_cond, _run_cond)
