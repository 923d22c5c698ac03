"""Parts of a jaxpr: a run of equations, and what serves the value of one tap alone."""

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, JaxprEqn, Var

from theseus_track.capture.primitives import varying
from theseus_track.capture.replicate import settled
from theseus_track.capture.rule import Flags, Keep
from theseus_track.capture.tap import tap_p
from theseus_track.capture.vary import vary

__all__ = ["Guarded", "cut", "guarded_taps", "tapped", "variables", "varying_of"]


@dataclass(frozen=True)
class Guarded:
    """The equations that serve one tap's value and nothing else.

    Attributes:
        part: From the inputs to the leaves of the value.
        inputs: What it reads from the rest of the program.
        vary: Inside `shard_map`: the mesh axes over which some leaf differs.
    """

    part: Jaxpr
    inputs: Sequence[Var]
    vary: frozenset[str]

    def run(self, args: Sequence[Any], flags: Flags) -> list[Any]:
        """Compute the value where some flag is set; elsewhere make zeros."""

        def compute(*inputs: Any) -> list[Any]:
            return tapped(jax.core.eval_jaxpr(self.part, [], *inputs), self.vary)

        def skip(*inputs: Any) -> list[Any]:
            avals = jax.eval_shape(compute, *inputs)
            zeros = (jnp.zeros(aval.shape, aval.dtype) for aval in avals)
            return [vary(leaf, self.vary) for leaf in zeros]

        wanted = functools.reduce(operator.or_, flags)
        values: list[Any] = jax.lax.cond(wanted, compute, skip, *args)
        return values


def cut(
    jaxpr: Jaxpr, eqns: Sequence[JaxprEqn], results: Sequence[Any]
) -> tuple[Jaxpr, list[Var]]:
    """Make a program of some equations.

    Args:
        jaxpr: Where they stand.
        eqns: The equations, in order.
        results: Variables and literals that the program returns.

    Returns:
        The program, and the variables that it reads, in the order of its inputs.
    """
    made = {var for eqn in eqns for var in eqn.outvars}
    atoms = [*(atom for eqn in eqns for atom in eqn.invars), *results]
    read = list(dict.fromkeys(var for var in variables(atoms) if var not in made))
    part = jaxpr.replace(
        constvars=[],
        invars=read,
        outvars=list(results),
        eqns=list(eqns),
        debug_info=jaxpr.debug_info.with_unknown_names(),
    )
    return part, read


def guarded_taps(
    jaxpr: Jaxpr, keep: Sequence[Keep]
) -> tuple[Mapping[int, Guarded], frozenset[int]]:
    """Find what need not run where no value is wanted.

    Args:
        jaxpr: The program.
        keep: By equation, how the values of the taps in it are wanted.

    Returns:
        By the number of a tap's equation, what serves its value alone; and the
        numbers of all equations that the rest of the program does not need.
    """
    guarded = {
        number
        for number, eqn in enumerate(jaxpr.eqns)
        if eqn.primitive is tap_p
        and any(keep[number])
        and all(want.guarded for want in keep[number][0])
    }
    if not guarded:
        return {}, frozenset()
    live = set(variables(jaxpr.outvars))
    spare: set[int] = set()
    for number, eqn in reversed(list(enumerate(jaxpr.eqns))):
        if number in guarded:
            live |= set(variables(eqn.invars[: eqn.params["width"]]))
        elif any(keep[number]) or eqn.effects or not live.isdisjoint(eqn.outvars):
            live |= set(variables(eqn.invars))
        else:
            spare.add(number)
    alone = {number: _serving(jaxpr, number, spare) for number in guarded}
    found = {number: one for number, one in alone.items() if one.part.eqns}
    return found, frozenset(spare)


def tapped(values: Sequence[Any], axes: frozenset[str]) -> list[Any]:
    """Bring tapped values into the form in which rules can take them out.

    Args:
        values: The leaves of one tap's value.
        axes: Inside `shard_map`: the mesh axes over which some leaf differs.
    """
    return [vary(settled(value), axes) for value in values]


def varying_of(atoms: Sequence[Any]) -> frozenset[str]:
    """Name the axes over which some of the variables and literals differ."""
    return frozenset().union(*(varying(atom.aval) for atom in atoms))


def variables(atoms: Sequence[Any]) -> list[Var]:
    """Leave the literals out."""
    return [atom for atom in atoms if isinstance(atom, Var)]


def _serving(jaxpr: Jaxpr, tap: int, spare: set[int]) -> Guarded:
    """Take the spare equations that the value of a tap comes from."""
    values = jaxpr.eqns[tap].invars[jaxpr.eqns[tap].params["width"] :]
    needed, eqns = set(variables(values)), []
    for number in range(tap - 1, -1, -1):
        eqn = jaxpr.eqns[number]
        if number in spare and not needed.isdisjoint(eqn.outvars):
            needed |= set(variables(eqn.invars))
            eqns.append(eqn)
    return Guarded(*cut(jaxpr, eqns[::-1], values), varying_of(values))
