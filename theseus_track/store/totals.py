"""What there is in a run, in numbers: what a table of many runs shows of it."""

import dataclasses
from collections.abc import Iterable, Mapping

from theseus_track.store.curve import Curve

__all__ = ["Totals", "totals_of"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What there is in a run, in numbers.

    Attributes:
        counts: NAME -> at how many steps there is a result.
        steps: At how many steps there is any result.
        last: Metric -> its number at its last step.
        last_step: The highest step of a result or metric, or None.
    """

    counts: Mapping[str, int]
    steps: int
    last: Mapping[str, float]
    last_step: int | None


def totals_of(pairs: Iterable[tuple[str, int]], curves: Mapping[str, Curve]) -> Totals:
    """Add up.

    Args:
        pairs: NAME and step of each result, each pair once.
        curves: The metrics by name.
    """
    counts: dict[str, int] = {}
    steps: set[int] = set()
    for name, step in pairs:
        counts[name] = counts.get(name, 0) + 1
        steps.add(step)
    known = {name: curve for name, curve in curves.items() if len(curve.value)}
    rows = [int(curve.step[-1]) for curve in known.values()]
    return Totals(
        counts=counts,
        steps=len(steps),
        last={name: float(curve.value[-1]) for name, curve in known.items()},
        last_step=max([*steps, *rows], default=None),
    )
