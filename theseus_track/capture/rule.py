"""What a rule must do to hand a tapped value out of one JAX primitive.

A program is walked twice: `find` lists its taps from shapes alone, in program
order, and `run` evaluates an equation with the taps that are to be kept as extra
results. Both see the same order, which is what makes `path#k` well defined. A value
in a scan may be wanted of some iterations only: the flag that comes with it then says,
while the program runs, whether it may be computed here; elsewhere it is zero.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import jax
from jax.extend.core import Jaxpr, JaxprEqn

from theseus_track.capture.paths import Layers
from theseus_track.capture.tap import Tag

__all__ = [
    "WHOLE",
    "Evaluator",
    "Flags",
    "Found",
    "Keep",
    "Kept",
    "Loop",
    "Rule",
    "Want",
]


@dataclass(frozen=True)
class Want:
    """One way in which a tap's value is wanted.

    Attributes:
        layers: For each scan around the tap, the outermost first: which iterations;
            what is left out is None, all of them.
        guarded: A scan that was entered already wants some iterations only.
    """

    layers: tuple[Layers, ...] = ()
    guarded: bool = False

    @property
    def here(self) -> Layers:
        """Which iterations of the outermost scan are wanted."""
        return self.layers[0] if self.layers else None

    @property
    def entered(self) -> "Want":
        """The same want as seen inside the outermost scan."""
        return Want(self.layers[1:], self.guarded or self.here is not None)


WHOLE = (Want(),)
"""The value is wanted once, with the iterations of all scans stacked."""

Keep = tuple[tuple[Want, ...], ...]
"""For each found tap of a jaxpr, in program order: how its value is wanted, if so."""

Flags = Sequence[Any]
"""For each wanted value: whether it may be computed here; None where it always is."""


@dataclass(frozen=True)
class Loop:
    """A scan around a tap.

    Attributes:
        scan: The same for all taps that one scan holds, and for no others.
        length: Its number of iterations.
        axis: Which axis of the value it makes.
    """

    scan: int
    length: int
    axis: int


@dataclass(frozen=True)
class Found:
    """One tap of a program.

    Attributes:
        tag: What the tap stands for.
        leaves: Shape and dtype of each leaf of the value as it leaves the program,
            leading axes included.
        axes: Names of the leading axes that loops and `vmap` put in front.
        loops: The scans around it, the outermost first.
        vary: Inside `shard_map`: the mesh axes over which some leaf differs.
        valid_shape: Shape of the flag that says whether the tap was reached; None
            where it always is. Its axes are the first of those of the value.
        blocked: The primitive that cannot hand the value out; None if all can.
    """

    tag: Tag
    leaves: tuple[jax.ShapeDtypeStruct, ...]
    axes: tuple[str, ...] = ()
    loops: tuple[Loop, ...] = ()
    vary: frozenset[str] = frozenset()
    valid_shape: tuple[int, ...] | None = None
    blocked: str | None = None

    def taken(self, layers: Sequence[Layers]) -> "Found":
        """Return it as it is with only some iterations of its scans taken."""
        taken = self
        # From the last axis on, so that the ones before it stay where they are.
        for loop, wanted in reversed(list(zip(self.loops, layers, strict=False))):
            if isinstance(wanted, range):
                taken = _resized(taken, loop.axis, (len(wanted),))
            elif wanted is not None:
                taken = _resized(taken, loop.axis, ())
        return taken


def _resized(found: Found, axis: int, size: tuple[int, ...]) -> Found:
    """Return it with one axis of another length, or without that axis."""

    def resized(shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[:axis] + size + shape[axis + 1 :]

    valid = found.valid_shape
    if valid is not None and axis < len(valid):
        valid = resized(valid)
    # The entries of `loops` are not used any more once iterations are taken.
    return replace(
        found,
        leaves=tuple(
            jax.ShapeDtypeStruct(resized(leaf.shape), leaf.dtype)
            for leaf in found.leaves
        ),
        axes=(
            *found.axes[:axis],
            *(f"scan{length}" for length in size),
            *found.axes[axis + 1 :],
        ),
        valid_shape=valid,
    )


class Kept(NamedTuple):
    """A value on its way out: its leaves, and whether it was reached (None: always)."""

    leaves: list[Any]
    valid: Any


class Evaluator(Protocol):
    """What a rule may ask of the interpreter."""

    def find(self, jaxpr: Jaxpr) -> tuple[Found, ...]:
        """List the taps of a jaxpr in program order."""

    def evaluate(
        self,
        jaxpr: Jaxpr,
        consts: Sequence[Any],
        args: Sequence[Any],
        keep: Keep,
        flags: Flags,
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
        [Evaluator, JaxprEqn, Sequence[Any], Keep, Flags],
        tuple[list[Any], list[Kept]],
    ]
