"""The interpreter that turns the taps inside a program into its pure outputs."""

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import jax
from jax.extend.core import Jaxpr, JaxprEqn, Literal, Primitive, Var, primitives

from theseus_track.capture.calls import INLINE, JIT, REMAT
from theseus_track.capture.control import COND, SCAN, WHILE
from theseus_track.capture.recent import Recent
from theseus_track.capture.rule import Found, Keep, Kept, Rule, scope_of, sub_jaxprs
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


@dataclass(frozen=True)
class _Step:
    """A stretch of a jaxpr: a run of ordinary equations, or one with kept taps.

    Attributes:
        run: From the inputs to the results and the kept values.
        inputs: Variables and literals that it reads.
        outputs: Variables that it defines and that are needed later.
        dead: Variables that nobody needs after it: freed, as eager JAX would.
    """

    run: Callable[[Sequence[Any]], tuple[list[Any], list[Kept]]]
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    dead: frozenset[Any]


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
        self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], keep: Keep
    ) -> tuple[list[Any], list[Kept]]:
        """Evaluate a jaxpr with some of its taps as extra outputs.

        Args:
            jaxpr: The program.
            consts: Values of its constants.
            args: Values of its inputs.
            keep: For each tap of `find(jaxpr)`: is its value wanted?

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
            outputs, kept = step.run([read(atom) for atom in step.inputs])
            env.update(zip(step.outputs, outputs, strict=True))
            everything += kept
            for var in step.dead:
                env.pop(var, None)
        return [read(atom) for atom in jaxpr.outvars], everything

    def _find_in(self, eqn: JaxprEqn) -> tuple[Found, ...]:
        if eqn.primitive is tap_p:
            return self._find_tap(eqn)
        rule = RULES.get(eqn.primitive)
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
        return (Found(tag, leaves, axes=tag.axes),)

    def _plan(self, jaxpr: Jaxpr, keep: Keep) -> list[_Step]:
        """Cut a jaxpr into steps, and say which variables die after each."""
        groups: list[tuple[list[JaxprEqn], Keep]] = []
        start = 0
        for eqn in jaxpr.eqns:
            count = len(self._find_in(eqn))
            own, start = keep[start : start + count], start + count
            if any(own) or not groups or any(groups[-1][1]):
                groups.append(([eqn], own))
            else:
                groups[-1][0].append(eqn)
        needed = {atom for atom in jaxpr.outvars if isinstance(atom, Var)}
        steps = []
        for eqns, own in reversed(groups):
            steps.append(self._step(jaxpr, eqns, own, frozenset(needed)))
            needed |= {atom for atom in steps[-1].inputs if isinstance(atom, Var)}
        return steps[::-1]

    def _step(
        self, jaxpr: Jaxpr, eqns: list[JaxprEqn], keep: Keep, later: frozenset[Any]
    ) -> _Step:
        if any(keep):
            (eqn,) = eqns
            run = functools.partial(self._run_equation, eqn, keep)
            dead = frozenset(_variables(eqn.invars)) - later
            return _Step(run, eqn.invars, eqn.outvars, dead)
        made = [var for eqn in eqns for var in eqn.outvars]
        defined = set(made)
        read = dict.fromkeys(
            var for eqn in eqns for var in _variables(eqn.invars) if var not in defined
        )
        outputs = [var for var in made if var in later]
        chunk = jaxpr.replace(
            constvars=[],
            invars=list(read),
            outvars=outputs,
            eqns=eqns,
            debug_info=jaxpr.debug_info.with_unknown_names(),
        )

        def run_chunk(args: Sequence[Any]) -> tuple[list[Any], list[Kept]]:
            return list(jax.core.eval_jaxpr(chunk, [], *args)), []

        return _Step(run_chunk, list(read), outputs, frozenset(read) - later)

    def _run_equation(
        self, eqn: JaxprEqn, keep: Keep, args: Sequence[Any]
    ) -> tuple[list[Any], list[Kept]]:
        if eqn.primitive is tap_p:
            width = eqn.params["width"]
            return list(args[:width]), [Kept(list(args[width:]), None)]
        with contextlib.ExitStack() as around:
            # The settings under which the user's equation was traced, and the
            # names under which a profiler shows it.
            around.enter_context(eqn.ctx.manager)
            if scope := scope_of(eqn):
                around.enter_context(jax.named_scope(scope))
            return RULES[eqn.primitive].run(self, eqn, args, keep)


def _variables(atoms: Sequence[Any]) -> list[Var]:
    return [atom for atom in atoms if isinstance(atom, Var)]


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
            closed.jaxpr, closed.consts, leaves, (True,) * len(found)
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
