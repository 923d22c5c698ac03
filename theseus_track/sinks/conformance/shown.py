"""What a tracker shows, and whether it is what it was given."""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from theseus_track.records import FigureItem, Item, JsonItem, MetricsItem

__all__ = ["Shown", "check", "check_shown", "counted"]

_Identity: TypeAlias = tuple[str, str, str, int]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One thing that a tracker shows.

    Attributes:
        kind: "figure", "json" or "metric".
        name: The NAME of the result, or the metric's own name.
        part: The part, or "".
        step: The training step that it is shown at.
        wall_time: Its time, in seconds since the epoch.
        content: PNG bytes, the JSON value, or the number.
    """

    kind: str
    name: str
    part: str = ""
    step: int
    wall_time: float
    content: object


def check(holds: bool, message: str) -> None:
    """Fail with a message; `assert` has none outside of pytest's own modules."""
    if not holds:
        raise AssertionError(message)


def counted(shown: Iterable[Shown]) -> Counter[_Identity]:
    """Count how often each thing is shown at its step."""
    return Counter(map(_identity, shown))


def check_shown(items: Sequence[Item], shown: Iterable[Shown]) -> None:
    """Fail unless exactly these items are shown, each with its content."""
    found: dict[_Identity, list[Shown]] = {}
    for one in shown:
        found.setdefault(_identity(one), []).append(one)
    expected = [one for item in items for one in _expected(item)]
    missing = [one for one in expected if _identity(one) not in found]
    check(not missing, f"not shown: {missing!r:.500}")
    extra = set(found) - set(map(_identity, expected))
    check(not extra, f"shown, but never given: {extra!r:.500}")
    for one in expected:
        same = any(_same(one, other) for other in found[_identity(one)])
        check(same, f"given {one!r:.300}, shown {found[_identity(one)]!r:.300}")


def _identity(shown: Shown) -> _Identity:
    return shown.kind, shown.name, shown.part, shown.step


def _expected(item: Item) -> list[Shown]:
    step, time = item.step, item.wall_time
    match item:
        case FigureItem():
            pairs: list[tuple[str, str, object]] = [("figure", item.name, item.png)]
        case JsonItem():
            pairs = [("json", item.name, item.value)]
        case MetricsItem():
            pairs = [("metric", key, number) for key, number in item.metrics.items()]
    part = "" if isinstance(item, MetricsItem) else item.part
    return [
        Shown(
            kind=kind, name=name, part=part, step=step, wall_time=time, content=content
        )
        for kind, name, content in pairs
    ]


def _same(a: Shown, b: Shown) -> bool:
    return abs(a.wall_time - b.wall_time) < 1e-3 and _same_content(a.content, b.content)


def _same_content(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        # Trackers may keep 32 bits of a number.
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-6)
    return a == b
