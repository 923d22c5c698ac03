"""The way from the ledger to the sinks: items out, receipts back into the ledger."""

import dataclasses
import functools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from theseus_track.errors import DeliveryError, LedgerError
from theseus_track.records import (
    Delivered,
    FigureItem,
    Item,
    JsonItem,
    MetricsItem,
    RecordRef,
    RunInfo,
)
from theseus_track.run.troubles import Troubles
from theseus_track.sinks import Delivery, Receipt, Sink, SinkReport
from theseus_track.store import LedgerWriter

__all__ = ["Courier"]

_log = logging.getLogger(__name__)

# From best to worst: a record with several parts is as delivered as its worst one.
_ORDER = ("written", "skipped", "failed")

ReadItems = Callable[[RecordRef], Sequence[Item]]


@dataclasses.dataclass(slots=True)
class _Outstanding:
    """A record of which some parts have no receipt from one sink yet."""

    step: int
    parts: set[str]
    status: str = "written"
    reason: str = ""
    refused: bool = False


class Courier:
    """Hands items to every sink and marks in the ledger what became of them.

    Nothing here waits for a tracker. What does not fit into a sink's queue is
    remembered by its place in the ledger and read again from there later.
    """

    def __init__(
        self,
        sinks: Iterable[Sink],
        info: RunInfo,
        *,
        writer: LedgerWriter,
        read_items: ReadItems,
        troubles: Troubles,
    ) -> None:
        """Start one delivery thread for each sink.

        Args:
            sinks: The trackers; their names are distinct.
            info: The run.
            writer: Where delivered marks go.
            read_items: Reads the items of one record back from the ledger.
            troubles: Where refusals are told.
        """
        self._writer = writer
        self._read_items = read_items
        self._troubles = troubles
        self._lock = threading.Lock()
        self._outstanding: dict[str, dict[RecordRef, _Outstanding]] = {}
        self._metrics: dict[str, RecordRef] = {}
        self._deliveries: dict[str, Delivery] = {}
        for sink in sinks:
            self._outstanding[sink.name] = {}
            self._deliveries[sink.name] = Delivery(
                sink,
                info,
                on_receipt=self._receive,
                backlog=functools.partial(self._backlog, sink.name),
            )

    def __bool__(self) -> bool:
        """Say whether there is any sink."""
        return bool(self._deliveries)

    def send(self, ref: RecordRef, items: Sequence[Item]) -> None:
        """Offer the items of one record to every sink; returns at once."""
        for name, delivery in self._deliveries.items():
            waiting = _Outstanding(step=items[0].step, parts=set(map(_part, items)))
            with self._lock:
                self._outstanding[name][ref] = waiting
            # Every part is offered, also after a refusal: the sink counts them.
            if not all([delivery.offer(item) for item in items]):
                waiting.refused = True

    def flush(self, deadline: float) -> bool:
        """Deliver everything, until `deadline` on the monotonic clock.

        Returns:
            Whether every sink has taken all.
        """
        done = [
            delivery.flush(max(0.0, deadline - time.monotonic()))
            for delivery in self._deliveries.values()
        ]
        self.mark_metrics()
        return all(done)

    def close(self, deadline: float) -> list[SinkReport]:
        """Deliver what waits, close every sink, and report; bounded by `deadline`."""
        reports = [
            delivery.close(max(0.0, deadline - time.monotonic()))
            for delivery in self._deliveries.values()
        ]
        self.mark_metrics()
        return reports

    def mark_metrics(self) -> None:
        """Write down up to which record the metrics are delivered, for each sink.

        A mark for each row would double the journal; deliveries of one key keep
        their order, so the last one speaks for all before it.
        """
        with self._lock:
            marks, self._metrics = self._metrics, {}
        for sink, ref in marks.items():
            self._mark(Delivered(sink=sink, record=ref, status="written", through=True))

    def _backlog(self, name: str) -> Iterator[Item]:
        """Give what a full queue refused, from the ledger, in step order."""
        with self._lock:
            refused = sorted(
                ((w.step, ref.seq, ref) for ref, w in self._waiting(name) if w.refused),
                key=lambda entry: entry[:2],
            )
        for _, _, ref in refused:
            yield from self._read_items(ref)

    def _waiting(self, name: str) -> list[tuple[RecordRef, _Outstanding]]:
        return list(self._outstanding[name].items())

    def _receive(self, sink: str, item: Item, receipt: Receipt) -> None:
        if receipt.status == "failed":
            self._troubles.report(
                f"sink {sink}",
                DeliveryError(f"{sink} refused {_what(item)}: {receipt.reason}"),
            )
        with self._lock:
            waiting = self._outstanding[sink].get(item.ref)
            if waiting is None:
                return
            waiting.parts.discard(_part(item))
            if _ORDER.index(receipt.status) >= _ORDER.index(waiting.status):
                waiting.status = receipt.status
                waiting.reason = receipt.reason or waiting.reason
            if waiting.parts:
                return
            del self._outstanding[sink][item.ref]
            if isinstance(item, MetricsItem) and receipt.status == "written":
                self._metrics[sink] = item.ref
                return
        self._mark(
            Delivered(
                sink=sink,
                record=item.ref,
                status=waiting.status,
                reason=waiting.reason,
            )
        )

    def _mark(self, mark: Delivered) -> None:
        try:
            self._writer.append(mark)
        except LedgerError as error:
            # The item is shown; without its mark it is delivered once more later.
            _log.warning("A delivery could not be noted: %s", error)


def _part(item: Item) -> str:
    return "" if isinstance(item, MetricsItem) else item.part


def _what(item: Item) -> str:
    if isinstance(item, FigureItem | JsonItem):
        part = f" ({item.part})" if item.part else ""
        return f"{item.name}{part} of step {item.step}"
    return f"the metrics of step {item.step}"
