"""What a rule must do to hand a tapped value out of one JAX primitive.

A program is walked twice: `find` lists its taps from shapes alone, in program
order, and `run` evaluates an equation with the taps that are to be kept as extra
results. Both see the same order, which is what makes `path#k` well defined.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from theseus_track.capture.tap import Tag

__all__ = [
    "Evaluator",
    "Found",
    "Keep",
    "Kept",
    "Rule",
    "opened",
    "scope_of",
    "sub_jaxprs",
]

Keep = tuple[bool, ...]
"""For each found tap of a jaxpr, in program order: is its value wanted?"""


@dataclass(frozen=True)
class Found:
    """One tap of a program.

    Attributes:
        tag: What the tap stands for.
        leaves: Shape and dtype of each leaf of the value as it leaves the program,
            leading axes included.
        axes: Names of the leading axes that loops and `vmap` put in front.
        valid_shape: Shape of the flag that says whether the tap was reached; None
            where it always is.
        blocked: The primitive that cannot hand the value out; None if all can.
    """

    tag: Tag
    leaves: tuple[jax.ShapeDtypeStruct, ...]
    axes: tuple[str, ...] = ()
    valid_shape: tuple[int, ...] | None = None
    blocked: str | None = None


class Kept(NamedTuple):
    """A value on its way out: its leaves, and whether it was reached (None: always)."""

    leaves: list[Any]
    valid: Any


class Evaluator(Protocol):
    """What a rule may ask of the interpreter."""

    def find(self, jaxpr: Jaxpr) -> tuple[Found, ...]:
        """List the taps of a jaxpr in program order."""

    def evaluate(
        self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], keep: Keep
    ) -> tuple[list[Any], list[Kept]]:
        """Evaluate a jaxpr: its results, and the kept values in program order."""

    def compiled(self, key: Hashable, build: Callable[[], Any]) -> Any:
        """Return the jitted function that `build` made for this key."""


@dataclass(frozen=True)
class Rule:
    """How one primitive hands out the taps inside it.

    Attributes:
        find: Lists the taps of an equation in program order.
        run: Evaluates the equation; returns its results and the kept values.
    """

    find: Callable[[Evaluator, JaxprEqn], tuple[Found, ...]]
    run: Callable[
        [Evaluator, JaxprEqn, Sequence[Any], Keep], tuple[list[Any], list[Kept]]
    ]


def opened(jaxpr: Jaxpr | ClosedJaxpr) -> tuple[Jaxpr, Sequence[Any]]:
    """Split a jaxpr into the open one and its constants."""
    if isinstance(jaxpr, ClosedJaxpr):
        return jaxpr.jaxpr, jaxpr.consts
    return jaxpr, ()


def sub_jaxprs(params: object) -> Iterator[Jaxpr]:
    """Yield every jaxpr in an equation's parameters, in order."""
    if isinstance(params, Jaxpr | ClosedJaxpr):
        yield opened(params)[0]
    elif isinstance(params, dict):
        for value in params.values():
            yield from sub_jaxprs(value)
    elif isinstance(params, tuple | list):
        for value in params:
            yield from sub_jaxprs(value)


def scope_of(eqn: JaxprEqn) -> str:
    """Return the named scopes around an equation, which a rebuilt one must keep."""
    return str(eqn.source_info.name_stack)
