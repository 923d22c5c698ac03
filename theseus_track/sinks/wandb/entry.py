"""What of an item goes into one row of W&B."""

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

from theseus_track.records import Item, MetricsItem
from theseus_track.sinks.wandb.keys import StepKeys, escaped

__all__ = ["Entry", "Row", "record_of"]


def record_of(item: Item) -> str:
    """Return the text that names what a row shows: a record, and its part if any."""
    record = f"{item.ref.writer}:{item.ref.seq}"
    part = "" if isinstance(item, MetricsItem) else item.part
    return f"{record}:{escaped(part)}" if part else record


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class Entry:
    """Values that must be in one row, with the step that they belong to.

    Attributes:
        item: The item that they come from.
        steps: The keys that say their step and time.
        values: W&B key -> number or W&B media object.
        row: The row that it is in, once it is.
    """

    item: Item
    steps: StepKeys
    values: Mapping[str, Any]
    row: "Row | None" = None

    @property
    def step(self) -> int:
        """The training step, >= 0."""
        return self.item.step

    @property
    def record(self) -> str:
        """The record of the ledger, by a text that no other record has."""
        return record_of(self.item)


class Row:
    """What a row of W&B holds of ours, so that nothing in it is overwritten.

    Attributes:
        at: W&B's own counter for this row.
        ended: When it was found to be over, on the monotonic clock; W&B's process
            writes a row down afterwards.
    """

    def __init__(self, at: int) -> None:
        """Start empty.

        Args:
            at: W&B's own counter for this row.
        """
        self.at = at
        self.ended: float | None = None
        self._steps: dict[str, int] = {}
        self._keys: set[str] = set()
        self._records: dict[str, None] = {}

    def fits(self, entry: Entry) -> bool:
        """Tell whether an entry can be added: same step, and no key twice."""
        step = self._steps.get(entry.steps.step, entry.step)
        return step == entry.step and self._keys.isdisjoint(entry.values)

    def add(self, entry: Entry) -> None:
        """Note that an entry is in this row."""
        entry.row = self
        self._steps[entry.steps.step] = entry.step
        self._keys.update(entry.values)
        self._records[entry.record] = None

    def end(self) -> None:
        """Note that nothing is added to this row any more."""
        if self.ended is None:
            self.ended = time.monotonic()

    def records_with(self, entry: Entry) -> str:
        """Return the records that this row holds when an entry has joined."""
        return " ".join({**self._records, entry.record: None})
