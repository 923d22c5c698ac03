"""Warns, once, of a record or a run that grows larger than people expect."""

import logging
from collections.abc import Iterable
from pathlib import Path

from theseus_track.records import Record, ValuesRecord

__all__ = ["RECORD_BYTES", "RUN_BYTES", "SizeWatch"]

_log = logging.getLogger(__name__)

RECORD_BYTES = 32 << 20
"""Values of one analysis at one step above this are told."""

RUN_BYTES = 10 << 30
"""A run above this is told: its arrays and files together."""


class SizeWatch:
    """Adds up what one writer writes, on top of what the run holds already."""

    def __init__(self, directory: Path) -> None:
        """Count what is there.

        Args:
            directory: The directory of the run.
        """
        self._directory = directory
        # A few files: the journals and arrays. Figures of earlier writers, which
        # may be many, are not looked at; they are small beside the arrays.
        self._bytes = sum(path.stat().st_size for path in directory.glob("*.bin"))
        self._told: set[str] = set()

    def note(self, records: Iterable[Record], size: int) -> None:
        """Take note of a commit.

        Args:
            records: What was written.
            size: The bytes of its arrays and files.
        """
        self._bytes += size
        for record in records:
            if isinstance(record, ValuesRecord) and record.bytes > RECORD_BYTES:
                self._tell(
                    record.name,
                    f"The values of {record.name!r} take {_mb(record.bytes)} at step "
                    f"{record.step}; 1,000 such steps take {_mb(1000 * record.bytes)}. "
                    'Return less from analyze, or set STORE_DTYPE = "float16".',
                )
        if self._bytes > RUN_BYTES:
            self._tell(
                "",
                f"The run in {self._directory} has grown to {_mb(self._bytes)}. Run "
                "analyses less often (EVERY), return less from analyze, or set "
                'STORE_DTYPE = "float16".',
            )

    def _tell(self, what: str, message: str) -> None:
        if what not in self._told:
            self._told.add(what)
            _log.warning("%s", message)


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
