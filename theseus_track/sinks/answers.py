"""Tells who asked what became of each item, once the tracker would not forget it."""

import logging
import time
from collections.abc import Callable
from typing import TypeAlias

from theseus_track.records import Item
from theseus_track.sinks.contract import Receipt, Sink
from theseus_track.sinks.guard import Guard

__all__ = ["Answers", "OnReceipt"]

OnReceipt: TypeAlias = Callable[[str, Item, Receipt], None]

_log = logging.getLogger(__name__)
# How often a sink is asked whether it keeps what it took, in seconds.
_ASKED_EVERY = 1.0


class Answers:
    """The receipts of one sink on their way to the ledger; used on its thread only."""

    def __init__(self, sink: Sink, guard: Guard, on_receipt: OnReceipt | None) -> None:
        """Start with none.

        Args:
            sink: The sink, which may have a method `keeps`.
            guard: Calls it.
            on_receipt: Called with the sink's name, the item and its final receipt.
        """
        self._sink = sink
        self._guard = guard
        self._on_receipt = on_receipt
        # Written, but lost to the tracker if this process died now.
        self._unkept: list[tuple[Item, Receipt]] = []
        self._asked = 0.0

    def give(self, item: Item, receipt: Receipt) -> None:
        """Answer for an item, at once unless the tracker may still forget it."""
        if receipt.status == "written" and hasattr(self._sink, "keeps"):
            self._unkept.append((item, receipt))
        else:
            self._tell(item, receipt)

    def give_kept(self) -> None:
        """Answer for what the tracker would not forget any more."""
        self._asked = time.monotonic()
        keeps = getattr(self._sink, "keeps", None)
        kept: list[bool] = []
        if keeps is None or not self._guard.once(
            lambda: kept.extend(keeps(item) for item, _ in self._unkept), "keeps"
        ):
            return
        pairs = list(zip(self._unkept, kept, strict=True))
        self._unkept = [pair for pair, is_kept in pairs if not is_kept]
        for (item, receipt), is_kept in pairs:
            if is_kept:
                self._tell(item, receipt)

    @property
    def due(self) -> bool:
        """Whether it is time to ask the sink what it keeps."""
        return bool(self._unkept) and time.monotonic() - self._asked > _ASKED_EVERY

    @property
    def again_in(self) -> float | None:
        """Seconds after which to look again; None when nothing waits."""
        return _ASKED_EVERY if self._unkept else None

    def _tell(self, item: Item, receipt: Receipt) -> None:
        if self._on_receipt is None:
            return
        try:
            self._on_receipt(self._sink.name, item, receipt)
        except Exception:  # noqa: BLE001 (logged with its traceback)
            # A full disk under the ledger's mark must not end the delivery; the
            # item is then delivered once more, which a sink must bear.
            _log.exception("%s: a receipt could not be kept", self._sink.name)
