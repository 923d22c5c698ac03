"""The entries that wait for a row, in the order in which they came."""

import abc

from theseus_track.sinks.wandb.entry import Entry

__all__ = ["Waiting"]


class Waiting(abc.ABC):
    """Keeps entries until `progress` writes them. Not thread-safe."""

    def __init__(self) -> None:
        """Start with nothing to write."""
        self._waiting: list[Entry] = []

    def add(self, entry: Entry) -> None:
        """Take an entry; `progress` writes it."""
        self._waiting.append(entry)

    def remove(self, entry: Entry) -> None:
        """Forget an entry that was not written."""
        self._waiting.remove(entry)

    def holds(self, entry: Entry) -> bool:
        """Tell whether an entry was not written yet."""
        return entry in self._waiting

    @abc.abstractmethod
    def progress(self) -> bool:
        """Write what can be written; tell whether anything waits still."""
