"""Rules for the primitives that call one jaxpr once: jit, remat, custom derivatives."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import JaxprEqn

from theseus_track.capture.jitted import placement
from theseus_track.capture.rule import (
    Evaluator,
    Flags,
    Found,
    Keep,
    Kept,
    Rule,
    opened,
)

__all__ = ["INLINE", "JIT", "REMAT"]


def _find_in(param: str) -> Callable[[Evaluator, JaxprEqn], tuple[Found, ...]]:
    def find(evaluator: Evaluator, eqn: JaxprEqn) -> tuple[Found, ...]:
        return evaluator.find(opened(eqn.params[param])[0])

    return find


def _rebuilt_jit(evaluator: Evaluator, eqn: JaxprEqn, keep: Keep) -> Any:
    """Make a `jax.jit` function of a `jit` equation that also returns kept values.

    The equation's shardings, layouts, donation, name and compiler options are kept.
    """
    params = eqn.params
    jaxpr, consts = opened(params["jaxpr"])

    # The flags come last: donation counts the arguments from the first on.
    def run(*args: Any) -> tuple[list[Any], list[Kept]]:
        return evaluator.evaluate(jaxpr, consts, args[:-1], keep, args[-1])

    run.__name__ = run.__qualname__ = str(params["name"])
    options: dict[str, Any] = {
        "donate_argnums": np.flatnonzero(params["donated_invars"]).tolist(),
        "keep_unused": params["keep_unused"],
        "inline": params["inline"],
    }
    inputs = tuple(map(placement, params["in_shardings"], params["in_layouts"]))
    outputs = list(map(placement, params["out_shardings"], params["out_layouts"]))
    if jax.tree.leaves(inputs):
        options["in_shardings"] = (*inputs, None)
    if jax.tree.leaves(outputs):
        options["out_shardings"] = (outputs, None)
    if params["compiler_options_kvs"]:
        options["compiler_options"] = dict(params["compiler_options_kvs"])
    return jax.jit(run, **options)


def _run_jit(
    evaluator: Evaluator, eqn: JaxprEqn, args: Sequence[Any], keep: Keep, flags: Flags
) -> tuple[list[Any], list[Kept]]:
    # Called eagerly, a fresh jitted function would compile every time, so the
    # rebuilt one is kept for as long as the program is.
    names = ("jaxpr", "in_shardings", "out_shardings", "donated_invars")
    key = (keep, *(eqn.params[name] for name in names))
    function = evaluator.compiled(key, lambda: _rebuilt_jit(evaluator, eqn, keep))
    outputs, kept = function(*args, list(flags))
    return outputs, kept


def _run_remat(
    evaluator: Evaluator, eqn: JaxprEqn, args: Sequence[Any], keep: Keep, flags: Flags
) -> tuple[list[Any], list[Kept]]:
    jaxpr, consts = opened(eqn.params["jaxpr"])

    def run(*inner: Any) -> tuple[list[Any], list[Kept]]:
        return evaluator.evaluate(jaxpr, consts, inner, keep, flags)

    again = jax.checkpoint(
        run, prevent_cse=eqn.params["prevent_cse"], policy=eqn.params["policy"]
    )
    outputs, kept = again(*args)
    return outputs, kept


def _run_inline(
    evaluator: Evaluator, eqn: JaxprEqn, args: Sequence[Any], keep: Keep, flags: Flags
) -> tuple[list[Any], list[Kept]]:
    jaxpr, consts = opened(eqn.params["call_jaxpr"])
    return evaluator.evaluate(jaxpr, consts, args, keep, flags)


JIT = Rule(_find_in("jaxpr"), _run_jit)
REMAT = Rule(_find_in("jaxpr"), _run_remat)
# A custom derivative is used up by the differentiation inside the watched function;
# what is left of the equation only evaluates, so its body can be written in place.
INLINE = Rule(_find_in("call_jaxpr"), _run_inline)
