"""Brings one run to one sink, from the ledger: what is due, in step order, marked."""

import dataclasses
import heapq
import operator
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from theseus_track.errors import LedgerError, TheseusError
from theseus_track.records import (
    FigureItem,
    Item,
    JsonItem,
    MetricsRecord,
    RecordRef,
)
from theseus_track.sinks.backfilling import backfill_of
from theseus_track.sinks.contract import Backfill, Changes, Sink
from theseus_track.sinks.delivery import Delivery
from theseus_track.sinks.items import items_of
from theseus_track.sinks.marks import Due, Marks, Shown
from theseus_track.sinks.outbox import Outbox
from theseus_track.sinks.registry import Destination, open_sink
from theseus_track.sinks.report import SinkReport
from theseus_track.store import Run
from theseus_track.store.claim import Claim
from theseus_track.store.deliveries import Deliveries
from theseus_track.store.run_state import RUNNING, STOPPED, state_of

__all__ = ["How", "Syncing", "Tell"]

Tell = Callable[[int, int], None]
"""Called with how many are done and how many there are."""

# Seconds between two marks of the rows of metrics, many of which have one in common,
# and between two calls that tell how far it is.
_MARK_EVERY = 2.0
# A paused or blocked sink ends the handing over; the longest wait for room, in seconds.
_PATIENCE = 600.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """What `sync` was asked for; its fields are the arguments."""

    again: bool
    assume_stopped: bool
    timeout: float
    tell: Tell | None
    companion: bool = False


class Syncing:
    """One run on its way to one sink."""

    def __init__(self, run: Run, place: Destination, root: Path, how: How) -> None:
        self._run = run
        self._place = place
        self._how = how
        self._marks = Marks(root, run.info)
        self._unreadable: dict[str, int] = {}

    def run(self) -> tuple[SinkReport, Sequence[str]]:
        """Deliver, unless another process is at it; what fails is in the report."""
        mark = self._place.mark
        try:
            with Claim.take(self._run.dir, f"sync-{mark}"):
                return self._deliver()
        except TheseusError as error:
            # The other sinks are tried; this one says why it was not.
            pending = _parts(self._due(self._answers()))
            return _report(mark, pending=pending, reasons={str(error): 1}), ()

    def _deliver(self) -> tuple[SinkReport, Sequence[str]]:
        answers = self._answers()
        due = self._due(answers)
        if not due:
            return _report(self._place.mark), ()
        sink = self._prepared()
        outbox = Outbox(self._place.mark, self._marks.of(answers, due))
        for ref, record in due:
            row = isinstance(record, MetricsRecord)
            row = row and answers.answer(ref, record) is None
            outbox.expect(ref, record.step, _part_names(record), row=row)
        try:
            report = self._hand_over(sink, outbox, due)
        finally:
            outbox.mark_rows()
            self._marks.close()
        notes: Iterable[str] = getattr(sink, "notes", tuple)()
        return report, [f"{self._place.mark}: {note}" for note in notes]

    def changes(self, planned: Iterable[FigureItem | JsonItem]) -> Changes:
        """Say what delivering would change; touches nothing.

        Args:
            planned: What will be in the ledger besides, by step.
        """
        later = list(planned)
        replaced = {(item.name, item.step) for item in later}
        waiting = (
            item
            for ref, record in self._due(self._answers())
            if isinstance(record, MetricsRecord)
            or (record.name, record.step) not in replaced
            for item in self._read(ref, record)
        )
        items = heapq.merge(waiting, later, key=operator.attrgetter("step"))
        sink = self._prepared()
        find = getattr(sink, "changes", None)
        if find is None:
            count = sum(1 for _ in items)
            return Changes(where=self._place.spec, counts={"items added": count})
        found: Changes = find(self._run.info, items)
        return found

    def _prepared(self) -> Sink:
        sink = open_sink(self._place.spec, self._run.info)
        prepare = getattr(sink, "prepare", None)
        if prepare is not None:
            prepare(self._backfill())
        return sink

    def _hand_over(self, sink: Sink, outbox: Outbox, due: Due) -> SinkReport:
        delivery = Delivery(
            sink,
            self._run.info,
            on_receipt=lambda _sink, item, receipt: outbox.settle(item, receipt),
        )
        marked = time.monotonic()
        for count, (ref, record) in enumerate(due, 1):
            if not all(delivery.put(i, _PATIENCE) for i in self._read(ref, record)):
                break
            if time.monotonic() - marked > _MARK_EVERY or count == len(due):
                outbox.mark_rows()
                marked = time.monotonic()
                if self._how.tell is not None:
                    self._how.tell(count, len(due))
        report = delivery.close(self._how.timeout)
        unreadable = sum(self._unreadable.values())
        known = report.delivered + report.skipped + report.failed + unreadable
        return dataclasses.replace(
            report,
            sink=self._place.mark,
            failed=report.failed + unreadable,
            pending=_parts(due) - known,
            reasons={**report.reasons, **self._unreadable},
        )

    def _read(self, ref: RecordRef, record: Shown) -> list[Item]:
        try:
            return items_of(self._run.dir, ref, record)
        except LedgerError as error:
            # One damaged file must not keep the others back.
            parts = len(_part_names(record))
            self._unreadable[str(error)] = self._unreadable.get(str(error), 0) + parts
            return []

    def _answers(self) -> Deliveries:
        return Deliveries(self._run.refresh().records(), self._place.mark)

    def _due(self, answers: Deliveries) -> Due:
        """Return what is to be delivered, by step."""
        busy = self._delivering()
        return [
            (ref, record)
            for ref, record in self._run.deliverable()
            if ref.writer not in busy
            and (self._how.again or not answers.settled(ref, record))
        ]

    def _delivering(self) -> set[str]:
        """Return the writers of trainings that bring their own results to the sink."""
        if self._how.assume_stopped or self._place.mark not in self._run.info.sinks:
            return set()
        return {
            pair[0].stem
            for pair in self._run.writers()
            if pair[1].purpose == "live" and state_of([pair]) == RUNNING
        }

    def _backfill(self) -> Backfill:
        state = self._run.state
        stopped = self._how.assume_stopped and state == RUNNING
        found = backfill_of(self._run, STOPPED if stopped else state)
        return dataclasses.replace(found, companion=self._how.companion)


def _part_names(record: Shown) -> tuple[str, ...]:
    if isinstance(record, MetricsRecord):
        return ("",)
    return tuple(part.part for part in record.parts)


def _parts(due: Due) -> int:
    return sum(len(_part_names(record)) for _, record in due)


def _report(
    mark: str, *, pending: int = 0, reasons: dict[str, int] | None = None
) -> SinkReport:
    return SinkReport(
        sink=mark,
        delivered=0,
        skipped=0,
        failed=0,
        pending=pending,
        reasons=reasons or {},
        closed=True,
    )
