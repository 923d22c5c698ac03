"""The way from the ledger to the sinks: items out, receipts back into the ledger."""

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from theseus_track.errors import DeliveryError
from theseus_track.records import (
    FigureItem,
    Item,
    JsonItem,
    MetricsItem,
    RecordRef,
    RunInfo,
)
from theseus_track.run.troubles import Troubles
from theseus_track.sinks import Delivery, Receipt, Sink, SinkReport
from theseus_track.sinks.outbox import Outbox, part_of
from theseus_track.store import LedgerWriter

__all__ = ["Courier"]

ReadItems = Callable[[RecordRef], Sequence[Item]]


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
        self._read_items = read_items
        self._troubles = troubles
        self._outboxes: dict[str, Outbox] = {}
        self._deliveries: dict[str, Delivery] = {}
        for sink in sinks:
            self._outboxes[sink.name] = Outbox(sink.name, writer.append)
            self._deliveries[sink.name] = Delivery(
                sink,
                info,
                on_receipt=self._receive,
                backlog=functools.partial(self._backlog, sink.name),
                on_postpone=functools.partial(self._postpone, sink.name),
            )

    def __bool__(self) -> bool:
        """Say whether there is any sink."""
        return bool(self._deliveries)

    def send(self, ref: RecordRef, items: Sequence[Item]) -> None:
        """Offer the items of one record to every sink; returns at once."""
        for name, delivery in self._deliveries.items():
            outbox = self._outboxes[name]
            row = isinstance(items[0], MetricsItem)
            outbox.expect(ref, items[0].step, map(part_of, items), row=row)
            # Every part is offered, also after a refusal: the sink counts them.
            if not all([delivery.offer(item) for item in items]):
                outbox.refuse(ref)

    def hand_over(self, deadline: float) -> bool:
        """Wait until every sink was given everything, until `deadline` (monotonic)."""
        done = [
            delivery.hand_over(max(0.0, deadline - time.monotonic()))
            for delivery in self._deliveries.values()
        ]
        return all(done)

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
        # All at once: one that blocks must not use up the time of the others.
        for delivery in self._deliveries.values():
            delivery.begin_close(max(0.0, deadline - time.monotonic()))
        reports = [
            delivery.close(max(0.0, deadline - time.monotonic()))
            for delivery in self._deliveries.values()
        ]
        self.mark_metrics()
        return reports

    def mark_metrics(self) -> None:
        """Write down up to which record the metrics are delivered, for each sink."""
        for outbox in self._outboxes.values():
            outbox.mark_rows()

    def _backlog(self, name: str) -> Iterator[Item]:
        """Give what a full queue refused, from the ledger, in step order."""
        for ref in self._outboxes[name].refused():
            yield from self._read_items(ref)

    def _postpone(self, name: str, item: Item) -> None:
        self._outboxes[name].refuse(item.ref)

    def _receive(self, sink: str, item: Item, receipt: Receipt) -> None:
        if receipt.status == "failed":
            self._troubles.report(
                f"sink {sink}",
                DeliveryError(f"{sink} refused {_what(item)}: {receipt.reason}"),
            )
        self._outboxes[sink].settle(item, receipt)


def _what(item: Item) -> str:
    if isinstance(item, FigureItem | JsonItem):
        part = f" ({item.part})" if item.part else ""
        return f"{item.name}{part} of step {item.step}"
    return f"the metrics of step {item.step}"
