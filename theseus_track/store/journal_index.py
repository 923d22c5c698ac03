"""The lines of one journal as compact columns, about 50 bytes for each line."""

import bisect
import contextlib
import sys
import time
import zlib
from array import array
from collections.abc import Iterable, Iterator, Set
from pathlib import Path
from typing import Any

from theseus_track.records import (
    End,
    MetricsRecord,
    Record,
    RecordRef,
    ResultRecord,
    Resumed,
    ValuesRecord,
    WriterRecord,
)
from theseus_track.store.journal import TORN_MARK, Line
from theseus_track.store.scan import METRICS, OTHER, RESULT, VALUES, Glance, scan

__all__ = ["COLUMNS", "JournalIndex"]

COLUMNS = {
    "kind": "B",
    "failed": "B",
    "offset": "Q",
    "length": "I",
    "seq": "q",
    "name": "i",
    "step": "q",
    "wall_time": "d",
    # The tokens of values and metrics, or the line that a result's values are in.
    "extra": "q",
    "ref": "i",
}
"""Name of a column -> its type code."""

_CHUNK = 1 << 20


class JournalIndex:
    """Follows one journal like `JournalReader`, but keeps where lines are, not what.

    Attributes:
        path: The journal.
        stem: The name of its writer.
        columns: By name, one number for each line of values, results and metrics.
        names: The NAMEs and writers that columns point into.
        metrics: Name -> the places of its rows in the columns, and its numbers.
        count: How many good lines there are, of every kind.
        damaged: How many lines were passed over.
        writer: The first line, or None.
        resumed: The line that says where a continued run went on, or None.
        last: The last line if it ends the journal, else None.
        offset: How far it was read, in bytes.
        size: How large it was then, in bytes.
        next_seq: The number of the next line.
        read_all: Whether it was read to its end.
        first_seen: When this reader first looked, on the monotonic clock.
        grew: When this reader saw the file grow, on that clock, or None.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stem = path.stem
        self.first_seen = time.monotonic()
        self.grew: float | None = None
        self.read_all = False
        self.forget()

    def forget(self) -> None:
        """Begin again at the start of the file."""
        # Any: the type of a column goes with its code, as COLUMNS says.
        self.columns: dict[str, array[Any]] = {
            name: array(code) for name, code in COLUMNS.items()
        }
        self.names: list[str] = []
        self.metrics: dict[str, tuple[array[int], array[float]]] = {}
        self.count = self.offset = self.size = 0
        self._damaged = self._tail = 0
        self.writer: WriterRecord | None = None
        self.resumed: Resumed | None = None
        self.last: Record | None = None
        self._numbers: dict[str, int] = {}
        self.next_seq = 0

    @property
    def damaged(self) -> int:
        """How many lines were passed over because they were altered."""
        return self._damaged + self._tail

    def poll(self, size: int) -> bool:
        """Read what was added.

        Args:
            size: How large the file is now, in bytes.

        Returns:
            Whether there are more lines than before, or other ones.
        """
        if size == self.size and self.read_all:
            return False
        before = self.count
        if size < self.size:
            self.forget()
        elif self.read_all and size > self.size:
            self.grew = time.monotonic()
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                self.follow(iter(lambda: file.read(_CHUNK), b""))
        except OSError:
            # One unreadable file must not hide the other runs.
            self._tail = 1
        self.size, self.read_all = size, True
        return self.count != before

    def line_at(self, seq: int) -> int:
        """Return the place of a line in the columns by its number, or -1."""
        seqs = self.columns["seq"]
        place = bisect.bisect_left(seqs, seq)
        if place < len(seqs) and seqs[place] == seq:
            return place
        # Damage may have left the numbers out of order.
        with contextlib.suppress(ValueError):
            return seqs.index(seq)
        return -1

    def find(self, text: bytes) -> int:
        """Return the place of the first line of a result that holds a text, or -1."""
        offsets, kinds = self.columns["offset"], self.columns["kind"]
        with contextlib.suppress(OSError), self.path.open("rb") as file:
            position, before = 0, b""
            while chunk := file.read(_CHUNK):
                data = before + chunk
                found = data.find(text)
                while found >= 0:
                    place = bisect.bisect(offsets, position + found) - 1
                    if place >= 0 and kinds[place] == RESULT:
                        return place
                    found = data.find(text, found + 1)
                before = data[-len(text) :]
                position += len(data) - len(before)
        return -1

    def names_and_steps(self) -> Iterator[tuple[str, int]]:
        """Yield the NAME and step of each line of values or a result."""
        kinds, names, steps = (self.columns[c] for c in ("kind", "name", "step"))
        for kind, name, step in zip(kinds, names, steps, strict=True):
            if kind != METRICS:
                yield self.names[int(name)], int(step)

    def metric_rows(
        self, hidden: Set[tuple[str, int]]
    ) -> list[tuple[int, float, dict[str, float]]]:
        """Return step, wall time and numbers of each row of metrics but the hidden."""
        numbers: dict[int, dict[str, float]] = {
            place: {}
            for place, kind in enumerate(self.columns["kind"])
            if kind == METRICS
            and (not hidden or (self.stem, self.columns["seq"][place]) not in hidden)
        }
        for name, pair in self.metrics.items():
            for place, value in zip(*pair, strict=True):
                if place in numbers:
                    numbers[int(place)][name] = value
        steps, times = self.columns["step"], self.columns["wall_time"]
        return [(int(steps[p]), times[p], found) for p, found in numbers.items()]

    def stubs(self) -> Iterator[Line]:
        """Yield the lines as records that hold no more than the index does."""
        if self.resumed is not None:
            yield Line(RecordRef(writer=self.stem, seq=-1), self.resumed)
        for place, kind in enumerate(self.columns["kind"]):
            yield Line(
                RecordRef(writer=self.stem, seq=self.columns["seq"][place]),
                self._stub(place, kind),
            )

    def peek(self, size: int, length: int) -> None:
        """Read only the end of the file, for a first impression.

        Args:
            size: How large the file is now, in bytes.
            length: How much to read of it, in bytes.
        """
        self.offset = max(0, size - length)
        self.poll(size)
        # The line that begins in the middle is not damaged, and the end is not all.
        self._damaged = self._tail = 0
        if self.writer is None and self.offset:
            first = JournalIndex(self.path)
            with contextlib.suppress(OSError), self.path.open("rb") as file:
                first.follow(iter((file.readline(length),)))
            self.writer = first.writer

    def restore(
        self,
        *,
        names: Iterable[str],
        offset: int,
        size: int,
        count: int,
        damaged: int,
        next_seq: int,
    ) -> None:
        """Take up again after the columns were filled from a file."""
        self.names = [sys.intern(name) for name in names]
        self._numbers = {name: place for place, name in enumerate(self.names)}
        self.offset, self.size, self.count = offset, size, count
        self._damaged, self.next_seq, self.read_all = damaged, next_seq, True

    def _stub(self, place: int, kind: int) -> Record:
        columns = self.columns
        step, wall_time = columns["step"][place], columns["wall_time"][place]
        extra, ref = columns["extra"][place], columns["ref"][place]
        if kind == METRICS:
            return MetricsRecord(step=step, wall_time=wall_time, metrics={})
        name = self.names[columns["name"][place]]
        if kind == VALUES:
            return ValuesRecord(
                key="",
                name=name,
                paths=(),
                step=step,
                wall_time=wall_time,
                computed=0.0,
                tree=None,
                leaves=(),
                tokens=None if extra < 0 else extra,
            )
        return ResultRecord(
            key=None,
            name=name,
            step=step,
            wall_time=wall_time,
            values=None if ref < 0 else RecordRef(writer=self.names[ref], seq=extra),
            error="?" if columns["failed"][place] else None,
        )

    def follow(self, chunks: Iterable[bytes]) -> None:
        """Take what the file holds from `offset` on."""
        self._tail = 0
        rest, position = b"", self.offset
        for chunk in chunks:
            *whole, rest = (rest + chunk).split(b"\n")
            for raw in whole:
                glance = _checked(raw)
                if glance is not None:
                    self._damaged += self._tail
                    self._tail = 0
                    self._keep(glance, position, len(raw))
                    self.offset = position + len(raw) + 1
                elif not (raw + b"\n").endswith(TORN_MARK):
                    self._tail += 1
                position += len(raw) + 1

    def _keep(self, glance: Glance, offset: int, length: int) -> None:
        self.count += 1
        record, self.last = glance.record, None
        if isinstance(record, WriterRecord):
            self.writer = self.writer or record
        elif isinstance(record, Resumed):
            self.resumed = self.resumed or record
        elif isinstance(record, End):
            self.last = record
        seq = self.next_seq if glance.seq < 0 else glance.seq
        self.next_seq = seq + 1
        if glance.kind == OTHER:
            return
        place, columns = len(self.columns["kind"]), self.columns
        columns["kind"].append(glance.kind)
        columns["failed"].append(glance.failed)
        columns["offset"].append(offset)
        columns["length"].append(length)
        columns["seq"].append(seq)
        columns["name"].append(self._number(glance.name))
        columns["step"].append(glance.step)
        columns["wall_time"].append(glance.wall_time)
        ref = glance.ref
        columns["extra"].append(glance.tokens if ref is None else ref[1])
        columns["ref"].append(-1 if ref is None else self._number(ref[0]))
        for name, value in (glance.metrics or {}).items():
            if name not in self.metrics:
                self.metrics[name] = (array("I"), array("d"))
            rows, values = self.metrics[name]
            rows.append(place)
            values.append(value)

    def _number(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self.names)
            self.names.append(name)
        return number


def _checked(raw: bytes) -> Glance | None:
    # Zeros that a crash of the file system left are passed over, as in parse_line.
    line = raw.lstrip(b"\0") if raw[:1] == b"\0" else raw
    body = line[9:]
    if line[:9] != b"%08x " % zlib.crc32(body):
        return None
    return scan(body)
