"""The runs of several roots, found by keys that are no paths."""

import hashlib
import os
from collections.abc import Sequence

from theseus_track.errors import NotFound
from theseus_track.store import Result, Run, Store

__all__ = ["Library"]


class Library:
    """The runs of several roots. Thread-safe, reads only.

    Args:
        roots: The roots; one that does not exist yet has no runs.
    """

    def __init__(self, roots: Sequence[str | os.PathLike[str] | None]) -> None:
        self.stores = [Store(root) for root in roots]

    def runs(self) -> dict[str, Run]:
        """Return the runs by their key, the oldest first, as they are now.

        A key is the same as long as the run stays where it is.
        """
        found = [
            run for store in self.stores if store.root.is_dir() for run in store.runs()
        ]
        found.sort(key=lambda run: (run.info.created, run.id))
        return {_key(run): run for run in found}

    def run(self, key: str) -> Run:
        """Return the run of this key.

        Raises:
            NotFound: When there is none.
        """
        run = self.runs().get(key)
        if run is None:
            raise NotFound("There is no run of this key; /api/runs lists them.")
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
        for result in self.run(key).results(superseded=True):
            if (result.ref.writer, result.ref.seq) == (writer, seq):
                return result
        raise NotFound("The run has no such result; /api/runs/RUN/results lists them.")


def _key(run: Run) -> str:
    return hashlib.sha256(os.fsencode(run.dir)).hexdigest()[:16]
