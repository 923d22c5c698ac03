"""The runs of several roots, found by keys that are no paths."""

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from theseus_track.errors import NotFound
from theseus_track.records import RecordRef
from theseus_track.store import Result, RunIndex, Store
from theseus_track.store.index_file import IndexFile

__all__ = ["Library"]

# Several readers that look at once share one look at the directories, in seconds.
_FRESH = 0.05
# Runs with journals below this many bytes are read at once, for this many seconds.
_SMALL = 1 << 18
_AT_ONCE = 0.1
_PATIENCE = 0.5
# So many runs, the last that were asked for, keep what is in them at hand.
_RECENT = 64


class Library:
    """The runs of several roots. Thread-safe, reads only.

    Runs are there at once, by the ends of their journals; a thread reads the whole
    of each meanwhile, the newest first, and ends when it is through.

    Args:
        roots: The roots; one that does not exist yet has no runs.
    """

    def __init__(self, roots: Sequence[str | os.PathLike[str] | None]) -> None:
        self.stores = [Store(root) for root in roots]
        self._kept = IndexFile.from_environment()
        self._lock = threading.Lock()
        self._known: dict[Path, RunIndex] = {}
        self._runs: dict[str, RunIndex] = {}
        self._recent: dict[str, RunIndex] = {}
        self._looked = -1.0
        self._quiet = threading.Condition()
        self._asked = 0
        self._reader: threading.Thread | None = None

    def runs(self) -> dict[str, RunIndex]:
        """Return the runs by their key, the oldest first, as they are now.

        A key is the same as long as the run stays where it is.
        """
        with self._lock:
            if time.monotonic() - self._looked > _FRESH:
                self._runs = self._look()
                self._looked = time.monotonic()
            return self._runs

    def run(self, key: str) -> RunIndex:
        """Return the run of this key, read to its end.

        Raises:
            NotFound: When there is none.
        """
        run = self._runs.get(key)
        if run is None or not run.dir.is_dir():
            run = self.runs().get(key)
        if run is None:
            raise NotFound("There is no run of this key; /api/runs lists them.")
        run.look()
        self._note(key, run)
        return run

    def result(self, key: str, writer: str, seq: int) -> Result:
        """Return the result that a record of the run tells of.

        Args:
            key: The key of the run.
            writer: The name of the record's writer.
            seq: The number of the record's line, >= 0.

        Raises:
            NotFound: When there is none.
        """
        return self.run(key).at(RecordRef(writer=writer, seq=seq))

    def root_of(self, run: RunIndex) -> int:
        """Return the number of the root that a run is in."""
        return next(i for i, s in enumerate(self.stores) if s.root in run.dir.parents)

    def indexing(self) -> dict[str, int]:
        """Return how many runs were read to their end, of how many."""
        runs = self.runs().values()
        return {"done": sum(run.complete for run in runs), "total": len(runs)}

    @contextlib.contextmanager
    def asked(self) -> Iterator[None]:
        """Let the thread that reads whole journals wait while a request is answered."""
        with self._quiet:
            self._asked += 1
        try:
            yield
        finally:
            with self._quiet:
                self._asked -= 1
                self._quiet.notify_all()

    def _note(self, key: str, run: RunIndex) -> None:
        with self._lock:
            self._recent.pop(key, None)
            self._recent[key] = run
            while len(self._recent) > _RECENT:
                self._recent.pop(next(iter(self._recent))).rest()

    def _look(self) -> dict[str, RunIndex]:
        self._known = {
            path: self._known.get(path) or RunIndex(path, self._kept)
            for store in self.stores
            for path in store.directories(self._known)
        }
        found = sorted(self._known.values(), key=lambda run: (run.info.created, run.id))
        deadline = time.monotonic() + _AT_ONCE
        for run in reversed(found):
            at_once = run.complete or time.monotonic() < deadline
            if at_once and (run.complete or run.size() < _SMALL):
                run.look()
        pending = [run for run in found if not run.complete]
        if pending and (self._reader is None or not self._reader.is_alive()):
            self._reader = threading.Thread(
                target=self._read,
                args=(pending[::-1],),
                name="theseus-index",
                daemon=True,
            )
            self._reader.start()
        return {_key(run): run for run in found}

    def _read(self, runs: Sequence[RunIndex]) -> None:
        for run in runs:
            with self._quiet:
                # Requests go first, but a stream of them must not stop the reading.
                self._quiet.wait_for(lambda: not self._asked, _PATIENCE)
            run.ready().totals()


def _key(run: RunIndex) -> str:
    return hashlib.sha256(os.fsencode(run.dir)).hexdigest()[:16]
