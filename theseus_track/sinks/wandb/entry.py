"""What of an item goes into one row of W&B."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from theseus_track.records import Item
from theseus_track.sinks.wandb.keys import StepKeys

__all__ = ["Entry", "Row"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """Values that must be in one row, with the step that they belong to.

    Attributes:
        item: The item that they come from.
        steps: The keys that say their step and time.
        values: W&B key -> number or W&B media object.
    """

    item: Item
    steps: StepKeys
    values: Mapping[str, Any]

    @property
    def step(self) -> int:
        """The training step, >= 0."""
        return self.item.step


class Row:
    """What a row of W&B holds of ours, so that nothing in it is overwritten."""

    def __init__(self, at: int) -> None:
        """Start empty.

        Args:
            at: W&B's own counter for this row.
        """
        self.at = at
        self._steps: dict[str, int] = {}
        self._keys: set[str] = set()

    def fits(self, entry: Entry) -> bool:
        """Tell whether an entry can be added: same step, and no key twice."""
        step = self._steps.get(entry.steps.step, entry.step)
        return step == entry.step and self._keys.isdisjoint(entry.values)

    def add(self, entry: Entry) -> None:
        """Note that an entry is in this row."""
        self._steps[entry.steps.step] = entry.step
        self._keys.update(entry.values)
