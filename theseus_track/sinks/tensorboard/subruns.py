"""Directories of one run in which the steps of every tag only ascend."""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

from theseus_track.sinks.tensorboard.events import EventFile, Value, last_steps

__all__ = ["SubRun", "SubRuns"]


class SubRun:
    """One directory that this process writes: what TensorBoard lists as a run."""

    def __init__(self, directory: Path, last: dict[str, int]) -> None:
        """Take a directory over.

        Args:
            directory: Where its event files are.
            last: The highest step of each tag that is there already.
        """
        self.directory = directory
        self._last = last
        self._file: EventFile | None = None

    def takes(self, tags: Iterable[str], step: int) -> bool:
        """Tell whether a step is above all of those tags'."""
        return all(step > self._last.get(tag, -1) for tag in tags)

    def write(self, values: Sequence[Value], *, step: int, wall_time: float) -> None:
        """Append one event, in a new file when the last one failed.

        Raises:
            OSError: When it cannot be written; nothing of it is left.
        """
        if self._file is None or not self._file.usable:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._file = EventFile(self.directory)
        self._file.write(step=step, wall_time=wall_time, values=values)
        self._last.update((value.tag, step) for value in values)

    def sync(self) -> None:
        """Make what was written survive a loss of power."""
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        """Close its file."""
        if self._file is not None:
            self._file.close()


class SubRuns:
    """A first directory and, for steps that come late, fresh ones beside it.

    A late step goes to the first of our directories in which it is not late, so
    that a backfill in ascending order takes one, however long it is.
    """

    def __init__(self, run: Path, *, first: Path | None, later: str) -> None:
        """Start without touching the disk.

        Args:
            run: The run's directory.
            first: Where steps go that are not late; None when another process
                writes there.
            later: The name of the others, up to their number.
        """
        self._run = run
        self._first = first
        self._later = later
        self._open: list[SubRun] = []

    def place(self, tags: Sequence[str], step: int) -> SubRun:
        """Return the directory in which a step may follow; perhaps a fresh one."""
        self._open_first()
        for subrun in self._open:
            if subrun.takes(tags, step):
                return subrun
        self._open.append(SubRun(self._fresh(), {}))
        return self._open[-1]

    def is_late(self, tags: Sequence[str], step: int) -> bool:
        """Tell whether a step cannot follow in the first directory."""
        self._open_first()
        return not (self._open and self._open[0].takes(tags, step))

    def begin_again(self, first: Path) -> None:
        """Forget what was open: the first directory has been made anew."""
        self._open.clear()
        self._first = first

    def all_later(self) -> list[Path]:
        """Return the directories of late steps that are there, by number."""
        found = (
            (path.name.removeprefix(self._later), path)
            for path in self._run.glob(f"{self._later}*")
            if path.is_dir()
        )
        numbered = [(int(n), path) for n, path in found if n.isascii() and n.isdigit()]
        return [path for _, path in sorted(numbered)]

    def sync(self) -> None:
        """Make what was written survive a loss of power."""
        for subrun in self._open:
            subrun.sync()

    def close(self) -> None:
        """Close all files."""
        for subrun in self._open:
            subrun.close()

    def _open_first(self) -> None:
        if self._first is not None:
            self._open.append(SubRun(self._first, last_steps(self._first)))
            self._first = None

    def _fresh(self) -> Path:
        for number in itertools.count(1):
            directory = self._run / f"{self._later}{number}"
            try:
                # Whoever makes a directory owns it: no other process writes there.
                directory.mkdir()
            except FileExistsError:
                continue
            return directory
        raise AssertionError("unreachable")
