"""The interpreter that turns the taps inside a program into its pure outputs."""

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import jax
from jax.extend.core import Jaxpr, JaxprEqn, Literal, Primitive, primitives

from theseus_track.capture.calls import INLINE, JIT, REMAT
from theseus_track.capture.control import COND, SCAN, WHILE
from theseus_track.capture.cut import (
    Guarded,
    cut,
    guarded_taps,
    tapped,
    variables,
    varying_of,
)
from theseus_track.capture.primitives import is_shard_map, settings_of, sub_jaxprs
from theseus_track.capture.recent import Recent
from theseus_track.capture.rule import (
    WHOLE,
    Flags,
    Found,
    Keep,
    Kept,
    Rule,
)
from theseus_track.capture.shards import SHARD_MAP
from theseus_track.capture.swap import swap_p, swapped
from theseus_track.capture.tap import MANUAL, tap_p
from theseus_track.errors import UnsupportedProgram

__all__ = ["Reaper", "reap"]

RULES: Mapping[Primitive, Rule] = MappingProxyType(
    {
        primitives.jit_p: JIT,
        primitives.remat_p: REMAT,
        primitives.custom_jvp_call_p: INLINE,
        primitives.custom_vjp_call_p: INLINE,
        primitives.closed_call_p: INLINE,
        primitives.call_p: INLINE,
        primitives.scan_p: SCAN,
        primitives.while_p: WHILE,
        primitives.cond_p: COND,
    }
)


def _rule(eqn: JaxprEqn) -> Rule | None:
    if is_shard_map(eqn):
        return SHARD_MAP
    return RULES.get(eqn.primitive)


@dataclass(frozen=True)
class _Step:
    """A stretch of a jaxpr: a run of ordinary equations, or one with kept taps.

    Attributes:
        run: From the inputs and the flags to the results and the kept values.
        inputs: Variables and literals that it reads.
        outputs: Variables that it defines and that are needed later.
        dead: Variables that nobody needs after it: freed, as eager JAX would.
        count: How many values it keeps; so many flags it gets.
    """

    run: Callable[[Sequence[Any], Flags], tuple[list[Any], list[Kept]]]
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    dead: frozenset[Any]
    count: int = 0


class Reaper:
    """Finds and takes out the taps of one owner; remembers what it built.

    Ordinary equations are evaluated by JAX itself, in runs as long as possible;
    only an equation that contains a kept tap is rebuilt.

    Args:
        owner: Whose taps.
        compiled: Where jitted functions are kept, to outlive this reaper.
    """

    def __init__(self, owner: object, compiled: Recent[Any] | None = None) -> None:
        self._owner = owner
        self._compiled = Recent[Any](64) if compiled is None else compiled
        self._built: dict[Hashable, Any] = {}

    def compiled(self, key: Hashable, build: Callable[[], Any]) -> Any:
        """Return the jitted function that `build` made for this key."""
        return self._compiled.get((self._owner, key), build)

    def _once(self, key: Hashable, build: Callable[[], Any]) -> Any:
        if key not in self._built:
            self._built[key] = build()
        return self._built[key]

    def find(self, jaxpr: Jaxpr) -> tuple[Found, ...]:
        """List the taps of a jaxpr in program order, from shapes alone."""
        return self._once(  # type: ignore[no-any-return]
            ("find", jaxpr),
            lambda: tuple(found for eqn in jaxpr.eqns for found in self._find_in(eqn)),
        )

    def evaluate(
        self,
        jaxpr: Jaxpr,
        consts: Sequence[Any],
        args: Sequence[Any],
        keep: Keep,
        flags: Flags,
    ) -> tuple[list[Any], list[Kept]]:
        """Evaluate a jaxpr with some of its taps as extra outputs.

        Args:
            jaxpr: The program.
            consts: Values of its constants.
            args: Values of its inputs.
            keep: For each tap of `find(jaxpr)`: how its value is wanted.
            flags: For each wanted value: whether it may be computed; None: it may.

        Returns:
            The results, and the wanted values in program order.
        """
        steps: list[_Step] = self._once(
            ("steps", jaxpr, keep), lambda: self._plan(jaxpr, keep)
        )
        env = dict(zip(jaxpr.constvars, consts, strict=True))
        env.update(zip(jaxpr.invars, args, strict=True))

        def read(atom: Any) -> Any:
            return atom.val if isinstance(atom, Literal) else env[atom]

        everything: list[Kept] = []
        for step in steps:
            start, end = len(everything), len(everything) + step.count
            outputs, kept = step.run([read(x) for x in step.inputs], flags[start:end])
            env.update(zip(step.outputs, outputs, strict=True))
            everything += kept
            for var in step.dead:
                env.pop(var, None)
        return [read(atom) for atom in jaxpr.outvars], everything

    def _find_in(self, eqn: JaxprEqn) -> tuple[Found, ...]:
        if eqn.primitive is tap_p:
            return self._find_tap(eqn)
        if eqn.primitive is swap_p:
            own = eqn.params["tag"].owner is self._owner
            # It hands no value out, but wants to know the iteration.
            return (Found(eqn.params["tag"], ()),) if own else ()
        rule = _rule(eqn)
        if rule is not None:
            return rule.find(self, eqn)
        return tuple(
            replace(found, blocked=found.blocked or eqn.primitive.name)
            for jaxpr in sub_jaxprs(eqn.params)
            for found in self.find(jaxpr)
        )

    def _find_tap(self, eqn: JaxprEqn) -> tuple[Found, ...]:
        tag, width = eqn.params["tag"], eqn.params["width"]
        if tag is None or tag.owner is not self._owner:
            return ()
        avals: list[Any] = [atom.aval for atom in eqn.invars[width:]]
        leaves = tuple(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals)
        return (Found(tag, leaves, tag.axes, vary=varying_of(eqn.invars[width:])),)

    def _plan(self, jaxpr: Jaxpr, keep: Keep) -> list[_Step]:
        """Cut a jaxpr into steps, and say which variables die after each."""
        counts = [len(self._find_in(eqn)) for eqn in jaxpr.eqns]
        ends = list(itertools.accumulate(counts))
        own = [keep[end - n : end] for n, end in zip(counts, ends, strict=True)]
        guarded, elsewhere = guarded_taps(jaxpr, own)
        groups: list[tuple[list[JaxprEqn], Keep, Guarded | None]] = []
        for number, eqn in enumerate(jaxpr.eqns):
            if number in elsewhere:
                continue
            if any(own[number]) or not groups or any(groups[-1][1]):
                groups.append(([eqn], own[number], guarded.get(number)))
            else:
                groups[-1][0].append(eqn)
        needed = set(variables(jaxpr.outvars))
        steps = []
        for eqns, wants, guard in reversed(groups):
            steps.append(self._step(jaxpr, eqns, wants, guard, frozenset(needed)))
            needed |= set(variables(steps[-1].inputs))
        return steps[::-1]

    def _step(
        self,
        jaxpr: Jaxpr,
        eqns: list[JaxprEqn],
        keep: Keep,
        guard: Guarded | None,
        later: frozenset[Any],
    ) -> _Step:
        count = sum(map(len, keep))
        if guard is not None:
            (eqn,) = eqns
            carriers = eqn.invars[: eqn.params["width"]]
            inputs = [*carriers, *guard.inputs]
            dead = frozenset(variables(inputs)) - later

            def run_guarded(
                args: Sequence[Any], flags: Flags
            ) -> tuple[list[Any], list[Kept]]:
                values = guard.run(args[len(carriers) :], flags)
                return list(args[: len(carriers)]), [Kept(values, None)] * count

            return _Step(run_guarded, inputs, eqn.outvars, dead, count)
        if any(keep):
            (eqn,) = eqns
            run = functools.partial(self._run_equation, eqn, keep)
            dead = frozenset(variables(eqn.invars)) - later
            return _Step(run, eqn.invars, eqn.outvars, dead, count)
        outputs = [var for eqn in eqns for var in eqn.outvars if var in later]
        chunk, read = cut(jaxpr, eqns, outputs)

        def run_chunk(
            args: Sequence[Any], _flags: Flags
        ) -> tuple[list[Any], list[Kept]]:
            return list(jax.core.eval_jaxpr(chunk, [], *args)), []

        return _Step(run_chunk, read, outputs, frozenset(read) - later)

    def _run_equation(
        self, eqn: JaxprEqn, keep: Keep, args: Sequence[Any], flags: Flags
    ) -> tuple[list[Any], list[Kept]]:
        if eqn.primitive is tap_p:
            width = eqn.params["width"]
            axes = varying_of(eqn.invars[width:])
            values = Kept(tapped(args[width:], axes), None)
            return list(args[:width]), [values] * len(flags)
        if eqn.primitive is swap_p:
            (flag,) = flags
            old, new = args
            return [swapped(old, new, flag)], [Kept([], None)]
        with settings_of(eqn):
            rule = _rule(eqn)
            assert rule is not None  # Else its taps are blocked, and not kept.
            return rule.run(self, eqn, args, keep, flags)


def reap(fn: Callable[..., Any]) -> Callable[..., tuple[Any, dict[str, Any]]]:
    """Make a function also return the values marked with `tap`.

    Args:
        fn: A function of pytrees of arrays. Differentiate inside it, not around the
            returned function; compile around.

    Returns:
        A function that takes what `fn` takes and returns its output and the values
        by name, in program order; from the second use on, a name gets `#1`, `#2`.
        Loops and `vmap` put a leading axis in front; a value in a branch that was
        not taken, or in a while loop that never ran, is zero.

    Raises:
        UnsupportedProgram: When a tap sits where no value can be handed out, such
            as the condition of a while loop.
    """

    @functools.wraps(fn)
    def reaped(*args: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        closed, shape = jax.make_jaxpr(fn, return_shape=True)(*args, **kwargs)
        reaper = Reaper(MANUAL)
        found = reaper.find(closed.jaxpr)
        for one in found:
            if one.blocked:
                raise UnsupportedProgram(
                    f"The tap {one.tag.label!r} sits inside {one.blocked}, which can "
                    "hand nothing out; move the tap outside."
                )
        leaves = jax.tree.leaves((args, kwargs))
        outputs, kept = reaper.evaluate(
            closed.jaxpr,
            closed.consts,
            leaves,
            (WHOLE,) * len(found),
            (None,) * len(found),
        )
        seen: Counter[str] = Counter()
        values = {}
        for one, value in zip(found, kept, strict=True):
            name = one.tag.label
            count = seen[name]
            seen[name] += 1
            values[f"{name}#{count}" if count else name] = one.tag.unflatten(
                value.leaves
            )
        return jax.tree.unflatten(jax.tree.structure(shape), outputs), values

    return reaped
