"""Which tables of a key are shown: a few, more of the early ones, always the last."""

from theseus_track.sinks.wandb.entry import Entry

__all__ = ["TableVersions"]

MOST = 20
"""Each table is a file and an artifact with a version: W&B is slow with thousands."""


class TableVersions:
    """Thins the tables of each key to twenty, the last of which comes at the end.

    The distances grow by half each time, so that twenty cover a long training:
    how long it will be is not known when the first ones are shown.
    """

    def __init__(self) -> None:
        """Start with no table shown."""
        self._count: dict[str, int] = {}
        self._shown: dict[str, int] = {}
        self._last: dict[str, Entry] = {}

    def choose(self, entry: Entry) -> bool:
        """Tell whether a table is shown now; if not, it may be the last.

        Args:
            entry: What holds this table and nothing else.
        """
        (key,) = entry.values
        count = self._count[key] = self._count.get(key, 0) + 1
        shown = self._shown.get(key, 0)
        if shown < MOST - 1 and count >= _due(shown):
            self._shown[key] = shown + 1
            self._last.pop(key, None)
            return True
        kept = self._last.get(key)
        if kept is None or entry.step >= kept.step:
            self._last[key] = entry
        return False

    def take_last(self) -> list[Entry]:
        """Return the last table of each key, where it was not shown."""
        last, self._last = list(self._last.values()), {}
        return last


def _due(shown: int) -> int:
    """Return which table of a key is shown after so many: 1, 2, 3, 4, 6, 9, 14, ..."""
    due = 1
    for _ in range(shown):
        due = max(due + 1, due * 3 // 2)
    return due
