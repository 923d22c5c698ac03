"""Rules for the primitives that call one jaxpr once: jit, remat, custom derivatives."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import JaxprEqn

from theseus_track.capture.jitted import placement
from theseus_track.capture.primitives import (
    JitEqn,
    read_inline,
    read_jit,
    read_remat,
)
from theseus_track.capture.rule import (
    Evaluator,
    Flags,
    Found,
    Keep,
    Kept,
    Rule,
)

__all__ = ["INLINE", "JIT", "REMAT"]


def _find_jit(evaluator: Evaluator, eqn: JaxprEqn) -> tuple[Found, ...]:
    return evaluator.find(read_jit(eqn).body[0])


def _find_remat(evaluator: Evaluator, eqn: JaxprEqn) -> tuple[Found, ...]:
    return evaluator.find(read_remat(eqn).body[0])


def _find_inline(evaluator: Evaluator, eqn: JaxprEqn) -> tuple[Found, ...]:
    return evaluator.find(read_inline(eqn)[0])


def _rebuilt_jit(evaluator: Evaluator, call: JitEqn, keep: Keep) -> Any:
    """Make a `jax.jit` function of a `jit` equation that also returns kept values.

    The equation's shardings, layouts, donation and name are kept; JAX allows no
    compiler options in a jit inside another.
    """
    jaxpr, consts = call.body

    # The flags come last: donation counts the arguments from the first on.
    def run(*args: Any) -> tuple[list[Any], list[Kept]]:
        return evaluator.evaluate(jaxpr, consts, args[:-1], keep, args[-1])

    run.__name__ = run.__qualname__ = call.name
    options: dict[str, Any] = {
        "donate_argnums": np.flatnonzero(call.donated).tolist(),
        "keep_unused": call.keep_unused,
        "inline": call.inline,
    }
    inputs = tuple(map(placement, call.in_shardings, call.in_layouts))
    outputs = list(map(placement, call.out_shardings, call.out_layouts))
    if jax.tree.leaves(inputs):
        options["in_shardings"] = (*inputs, None)
    if jax.tree.leaves(outputs):
        options["out_shardings"] = (outputs, None)
    return jax.jit(run, **options)


def _run_jit(
    evaluator: Evaluator, eqn: JaxprEqn, args: Sequence[Any], keep: Keep, flags: Flags
) -> tuple[list[Any], list[Kept]]:
    # Called eagerly, a fresh jitted function would compile every time, so the
    # rebuilt one is kept for as long as the program is.
    call = read_jit(eqn)
    function = evaluator.compiled(
        (keep, call.same), lambda: _rebuilt_jit(evaluator, call, keep)
    )
    outputs, kept = function(*args, list(flags))
    return outputs, kept


def _run_remat(
    evaluator: Evaluator, eqn: JaxprEqn, args: Sequence[Any], keep: Keep, flags: Flags
) -> tuple[list[Any], list[Kept]]:
    call = read_remat(eqn)
    jaxpr, consts = call.body

    def run(*inner: Any) -> tuple[list[Any], list[Kept]]:
        return evaluator.evaluate(jaxpr, consts, inner, keep, flags)

    again = jax.checkpoint(run, prevent_cse=call.prevent_cse, policy=call.policy)
    outputs, kept = again(*args)
    return outputs, kept


def _run_inline(
    evaluator: Evaluator, eqn: JaxprEqn, args: Sequence[Any], keep: Keep, flags: Flags
) -> tuple[list[Any], list[Kept]]:
    jaxpr, consts = read_inline(eqn)
    return evaluator.evaluate(jaxpr, consts, args, keep, flags)


JIT = Rule(_find_jit, _run_jit)
REMAT = Rule(_find_remat, _run_remat)
# A custom derivative is used up by the differentiation inside the watched function;
# what is left of the equation only evaluates, so its body can be written in place.
INLINE = Rule(_find_inline, _run_inline)
