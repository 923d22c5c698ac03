"""Which records of a run belong together, and which of them a newer one replaced."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from theseus_track.records import (
    MetricsRecord,
    RecordRef,
    ResultRecord,
    Resumed,
    ValuesRecord,
    WriterRecord,
)
from theseus_track.store.journal import Line

__all__ = ["Attempt", "Finding", "findings", "metrics", "rows"]

T = TypeVar("T", ValuesRecord, ResultRecord, MetricsRecord)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one writer wrote: its first line, then all of its lines."""

    writer: WriterRecord
    lines: Sequence[Line]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The values of one analysis at one step and what was drawn of them.

    Attributes:
        name: The NAME of the analysis.
        step: Training step, >= 0.
        values: The values, or None for a host-side result or a fault.
        result: What was drawn, or None when the process died in between.
        values_ref: Where the values are.
        result_ref: Where the result is.
        superseded: Whether a newer one of that name and step, or a resumed
            attempt, replaced it.
    """

    name: str
    step: int
    values: ValuesRecord | None = None
    result: ResultRecord | None = None
    values_ref: RecordRef | None = None
    result_ref: RecordRef | None = None
    superseded: bool = False


def findings(attempts: Sequence[Attempt]) -> list[Finding]:
    """Pair values with results and mark those that were replaced.

    Args:
        attempts: The writers of a run, the earliest first.

    Returns:
        By step; within a step, in the order in which they were written.
    """
    groups: dict[RecordRef, _Group] = {}
    for place in _places(attempts, ValuesRecord):
        record = place.record
        finding = Finding(
            name=record.name, step=record.step, values=record, values_ref=place.ref
        )
        groups[place.ref] = _Group(place.position, place.superseded, [finding])
    for drawn in _places(attempts, ResultRecord):
        group = _home(groups, drawn)
        finding = dataclasses.replace(
            group.findings[0], result=drawn.record, result_ref=drawn.ref
        )
        if group.findings[0].result is None:
            group.findings.clear()
        group.findings.append(finding)
    return _marked(sorted(groups.values(), key=lambda group: group.position))


def metrics(attempts: Sequence[Attempt], *, superseded: bool) -> list[MetricsRecord]:
    """Return the rows of metrics by step, with or without the replaced ones."""
    return [record for _, record in rows(attempts, superseded=superseded)]


def rows(
    attempts: Sequence[Attempt], *, superseded: bool
) -> list[tuple[RecordRef, MetricsRecord]]:
    """Return the rows of metrics by step, and where each is."""
    found = [
        (place.ref, place.record)
        for place in _places(attempts, MetricsRecord)
        if superseded or not place.superseded
    ]
    return sorted(found, key=lambda pair: pair[1].step)


@dataclasses.dataclass(slots=True)
class _Group:
    """Values and each drawing of them, the newest last."""

    position: int
    superseded: bool
    findings: list[Finding]


@dataclasses.dataclass(frozen=True, slots=True)
class _Place(Generic[T]):
    """A record, its place among all, and whether a resumed attempt replaced it."""

    position: int
    ref: RecordRef
    record: T
    superseded: bool


def _home(groups: dict[RecordRef, _Group], drawn: _Place[ResultRecord]) -> _Group:
    result = drawn.record
    group = groups.get(result.values) if result.values else None
    # A reference that damage or another program made wrong joins nothing.
    if group is not None:
        first = group.findings[0]
        if (first.name, first.step) == (result.name, result.step):
            return group
    bare = Finding(name=result.name, step=result.step)
    group = _Group(drawn.position, drawn.superseded, [bare])
    groups[drawn.ref] = group
    return group


def _marked(groups: Sequence[_Group]) -> list[Finding]:
    newest = {
        (group.findings[0].name, group.findings[0].step): group
        for group in groups
        if not group.superseded
    }
    marked = [
        dataclasses.replace(
            finding,
            superseded=finding is not group.findings[-1]
            or newest.get((finding.name, finding.step)) is not group,
        )
        for group in groups
        for finding in group.findings
    ]
    return sorted(marked, key=lambda finding: finding.step)


def _places(attempts: Sequence[Attempt], cls: type[T]) -> Iterator[_Place[T]]:
    position = 0
    for attempt, takeovers in zip(attempts, _takeovers(attempts), strict=True):
        for line in attempt.lines:
            position += 1
            record = line.record
            if isinstance(record, cls):
                replaced = any(
                    record.step >= step and record.wall_time < began
                    for step, began in takeovers
                )
                yield _Place(position, line.ref, record, replaced)


def _takeovers(attempts: Sequence[Attempt]) -> list[list[tuple[float, float]]]:
    # A later live attempt that resumed at a step replaces what earlier live ones
    # wrote at or above it before it began. What an earlier one still writes
    # afterwards is nobody's past and stays. Replayed results are not an attempt's.
    takeovers: list[list[tuple[float, float]]] = []
    later: list[tuple[float, float]] = []
    for attempt in reversed(attempts):
        live = attempt.writer.purpose == "live"
        takeovers.append(later if live else [])
        if live and _resumed_at(attempt) < math.inf:
            later = [*later, (_resumed_at(attempt), attempt.writer.started)]
    return takeovers[::-1]


def _resumed_at(attempt: Attempt) -> float:
    """Return the step at which an attempt resumed; infinite for a first attempt."""
    if attempt.writer.resumed_at is not None:
        return attempt.writer.resumed_at
    marks = (line.record for line in attempt.lines if isinstance(line.record, Resumed))
    return next((mark.step for mark in marks), math.inf)
