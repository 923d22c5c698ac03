"""plan: what the analyses will look at and return, found without running anything."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jax

from theseus_track.analysis.collect import collect
from theseus_track.analysis.sites import sites_of
from theseus_track.analysis.values import Entry, Values
from theseus_track.capture import Watched, watch
from theseus_track.capture.edits import identity
from theseus_track.errors import ClosedOverState, PlanError
from theseus_track.records.tracker_names import tracker_names

if TYPE_CHECKING:
    from theseus_track.analysis.base import AnalysisBase

__all__ = ["Plan", "PlannedAnalysis", "make_plan"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlannedAnalysis:
    """What one analysis will look at and return.

    Attributes:
        name: Its NAME.
        key: Its registry key, or its qualified name.
        shown: By tracker, what its result is called there; a part adds `.PART`.
        paths: The calls it looks at, in program order.
        leaves: Path within the value -> (shape, dtype name).
        bytes: What the value weighs on device, in bytes.
        held: What TOGETHER holds until the forward is over, in bytes.
    """

    name: str
    key: str
    shown: Mapping[str, str]
    paths: tuple[str, ...]
    leaves: Mapping[str, tuple[tuple[int, ...], str]]
    bytes: int
    held: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """What an instrumented step will do; print it.

    Attributes:
        analyses: One for each analysis, in order.
        flops: FLOPs of the plain step by XLA's count before optimisation, or None
            where the backend does not tell; a loop's body is counted once.
        flops_added: What the analyses add to it, counted alike.
        edited: How many further forward passes EDITS ask for; a grid is one.
    """

    analyses: tuple[PlannedAnalysis, ...]
    flops: float | None
    flops_added: float | None
    edited: int = 0

    @property
    def bytes(self) -> int:
        """What all values weigh together, in bytes."""
        return sum(analysis.bytes for analysis in self.analyses)

    def __str__(self) -> str:
        lines = [_line(analysis) for analysis in self.analyses]
        count = len(self.analyses)
        noun = "analysis" if count == 1 else "analyses"
        more = f" and {self.edited} edited" if self.edited else ""
        total = f"{count} {noun} in one forward pass{more}, {self.bytes:,} bytes"
        if self.flops and self.flops_added is not None:
            share = self.flops_added / self.flops
            total += f", {self.flops_added:,.0f} FLOPs added ({share:.2%})"
        return "\n".join([*lines, total])


def make_plan(
    fn: Callable[..., Any],
    analyses: Mapping[str, "AnalysisBase"],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Plan:
    """Trace abstractly and describe; raises PlanError with every fault at once."""
    finish = functools.partial(collect, analyses=analyses)
    # Not the step's own: under strict it would stop at the first fault.
    watched = watch(fn, sites_of(analyses), finish=finish)
    try:
        captures = watched.trace_abstract(*args, **kwargs).captures
    except ClosedOverState as error:
        raise PlanError(f"No analysis can run: {error}") from error
    values: Values = jax.eval_shape(finish, captures)
    faults = values.faults
    if faults:
        listed = "\n".join(f"- {fault.message}" for fault in faults.values())
        raise PlanError(f"{len(faults)} of {len(analyses)} analyses failed:\n{listed}")
    base, both = (_flops(each, args, kwargs) for each in (watch(fn, {}), watched))
    return Plan(
        analyses=tuple(_planned(values, entry) for entry in values.entries),
        flops=base,
        flops_added=None if base is None or both is None else both - base,
        edited=len({identity(one.EDITS) for one in analyses.values() if one.EDITS}),
    )


def _planned(values: Values, entry: Entry) -> PlannedAnalysis:
    leaves = jax.tree.leaves(values[entry.name])
    return PlannedAnalysis(
        name=entry.name,
        key=entry.key,
        shown=tracker_names(entry.name),
        paths=entry.paths,
        leaves={
            path: (tuple(leaf.shape), str(leaf.dtype))
            for path, leaf in zip(entry.leaves, leaves, strict=True)
        },
        bytes=sum(leaf.size * leaf.dtype.itemsize for leaf in leaves),
        held=entry.held,
    )


def _line(planned: PlannedAnalysis) -> str:
    shown = [repr(path) for path in planned.paths[:3]]
    if len(planned.paths) > len(shown):
        shown.append(f"... {len(planned.paths)} in all")
    shapes = [
        f"{path + ': ' if path else ''}{dtype}{list(shape)}"
        for path, (shape, dtype) in list(planned.leaves.items())[:3]
    ]
    if len(planned.leaves) > len(shapes):
        shapes.append(f"... {len(planned.leaves)} arrays")
    held = f" and {planned.held:,} bytes of inputs held" if planned.held else ""
    names = ", in ".join(
        f"{tracker} as {key}" for tracker, key in planned.shown.items()
    )
    return (
        f"{planned.name} ({planned.key}): {', '.join(shown)} -> {', '.join(shapes)}, "
        f"{planned.bytes:,} bytes{held}; shown in {names}"
    )


def _flops(
    fn: Watched, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> float | None:
    try:
        cost = fn.lower(*args, **kwargs).cost_analysis()
    except NotImplementedError:
        return None
    return None if not cost else float(cost.get("flops", 0.0))
