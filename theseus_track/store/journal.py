"""Reads a writer's journal, as it grows, and never takes a line that was altered."""

import dataclasses
import time
import zlib
from pathlib import Path

from theseus_track.errors import BadInput
from theseus_track.records import Record, RecordRef, loads, record_from_json
from theseus_track.records.run import FORMAT_VERSION
from theseus_track.records.strict_json import Json
from theseus_track.store.damage import Damage

__all__ = ["TORN_MARK", "JournalReader", "Line", "parse_line"]

TORN_MARK = b" #torn\n"
"""Ends a line that its writer could not finish, as on a full disk."""

_CRC_DIGITS = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """One record and where it is."""

    ref: RecordRef
    record: Record


def parse_line(line: bytes) -> dict[str, Json] | None:
    """Return the JSON object of a journal line, or None unless it is unaltered.

    Args:
        line: The line without its newline. Zeros before it, which a crash of the
            file system can leave, are passed over.
    """
    line = line.lstrip(b"\0")
    body = line[_CRC_DIGITS + 1 :]
    if line[: _CRC_DIGITS + 1] != b"%08x " % zlib.crc32(body):
        return None
    try:
        value = loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class JournalReader:
    """Follows one journal: each `poll` reads what was added since.

    Reading goes on behind the last good line. What follows it may still be on
    its way, so it is read again by the next poll.

    Attributes:
        path: The journal.
        stem: The name of its writer.
        lines: The records read so far, in the order of the file.
        first_seen: When this reader first looked, on the monotonic clock.
        grew: When this reader saw the file grow, on that clock, or None.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stem = path.stem
        self.first_seen = time.monotonic()
        self.grew: float | None = None
        self.lines: list[Line] = []
        self._damaged: list[Damage] = []
        # Damage behind the last good line, which the next poll looks at again.
        self._tail: list[Damage] = []
        self._size = 0
        self._offset = 0
        self._number = 0
        # How far the numbers that lines carry are from their places in the file.
        self._shift = 0

    @property
    def damaged(self) -> list[Damage]:
        """What was passed over because it was altered or cannot be understood."""
        return [*self._damaged, *self._tail]

    @property
    def last(self) -> Record | None:
        """The last record, or None."""
        return self.lines[-1].record if self.lines else None

    def poll(self) -> bool:
        """Read what was added.

        Returns:
            Whether there are more lines than before, or other ones.
        """
        try:
            size = self.path.stat().st_size
            if size == self._size == self._offset:
                return False
            data = self._read(size)
        except FileNotFoundError:
            return False
        except OSError as error:
            # One unreadable file must not hide the other runs.
            self._tail = [self._damage(self._number, 0, f"cannot be read: {error}")]
            return False
        return self._take(data)

    def _read(self, size: int) -> bytes:
        if size < self._size:
            self._forget()
        elif 0 < self._size < size:
            self.grew = time.monotonic()
        with self.path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        self._size = self._offset + len(data)
        return data

    def _forget(self) -> None:
        self.lines, self._damaged, self._tail = [], [], []
        self._size = self._offset = self._number = self._shift = 0

    def _take(self, data: bytes) -> bool:
        known = len(self.lines)
        self._tail = []
        offset, number = self._offset, self._number
        *whole, rest = data.split(b"\n")
        for raw in whole:
            value = parse_line(raw)
            if value is not None:
                self._accept(value, offset, number)
            elif not (raw + b"\n").endswith(TORN_MARK):
                what = "the line was altered"
                self._tail.append(self._damage(number, offset, what))
            offset, number = offset + len(raw) + 1, number + 1
            if value is not None:
                self._damaged += self._tail
                self._tail = []
                self._offset, self._number = offset, number
        # The end of a line that is whole but for its last byte.
        if rest and parse_line(rest[:-1]) is not None:
            what = "the newline was altered"
            self._tail.append(self._damage(number, offset, what))
        return len(self.lines) > known

    def _accept(self, value: dict[str, Json], offset: int, number: int) -> None:
        seq = self._seq(value, offset, number)
        try:
            record = record_from_json(value)
        except BadInput as error:
            version = value.get("v")
            if isinstance(version, int) and version > FORMAT_VERSION:
                return
            self._tail.append(self._damage(number, offset, f"malformed: {error}"))
            return
        if record is not None:
            self.lines.append(Line(RecordRef(writer=self.stem, seq=seq), record))

    def _seq(self, value: dict[str, Json], offset: int, number: int) -> int:
        # A line carries its number, so that it is known by it even where damage
        # joined or split the lines before. Without damage none may be missing.
        seq = value.get("seq")
        if not isinstance(seq, int) or isinstance(seq, bool):
            return number + self._shift
        if seq != number + self._shift and not self._tail:
            what = f"lines are missing or misplaced: it says it is line {seq + 1}"
            self._tail.append(self._damage(number, offset, what))
        self._shift = seq - number
        return seq

    def _damage(self, number: int, offset: int, what: str) -> Damage:
        where = f"line {number + 1}, byte {offset}"
        return Damage(file=self.path, where=where, what=what)
