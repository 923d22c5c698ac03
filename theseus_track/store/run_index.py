"""One run by an index of its lines: what there is, without reading all of it."""

import dataclasses
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from theseus_track.errors import LedgerError, NotFound
from theseus_track.records import (
    Record,
    RecordRef,
    ResultRecord,
    RunInfo,
    ValuesRecord,
    WriterRecord,
    record_from_json,
)
from theseus_track.store import query
from theseus_track.store.curve import Curve, curve_of
from theseus_track.store.index_file import IndexFile
from theseus_track.store.journal import parse_line
from theseus_track.store.journal_index import JournalIndex
from theseus_track.store.query import Finding
from theseus_track.store.result import Result
from theseus_track.store.run_state import DELIVERS, state_of
from theseus_track.store.runinfo import read_info
from theseus_track.store.totals import Totals, totals_of

__all__ = ["RunIndex"]

# Bytes of the end of a journal that tell what its run is about.
_GLIMPSE = 1 << 13


class RunIndex:
    """A run whose records are read one by one, when somebody asks. Thread-safe.

    It answers what a table of many runs needs from about 50 bytes a line, where a
    `Run` keeps every record. Reads only, takes no lock on the ledger.

    Args:
        directory: The directory of the run.
        kept: Where indexes are kept between processes, or None.

    Attributes:
        dir: The directory of the run.
        complete: Whether the journals were read; before, `last` and the like tell of
            the end of the newest journal only.
    """

    def __init__(self, directory: Path, kept: IndexFile | None = None) -> None:
        self.dir = directory
        self.complete = False
        self._kept = kept
        self._lock = threading.RLock()
        self._journals: dict[str, JournalIndex] = {}
        self._info: RunInfo | None = None
        self._found: list[Finding] | None = None
        self._end: tuple[Sequence[tuple[Path, int]], RunIndex] | None = None
        self._totals: Totals | None = None
        self._hidden: frozenset[tuple[str, int]] | None = None

    def look(self) -> bool:
        """Read what was written since; the first time, everything.

        Returns:
            Whether there is anything new.
        """
        with self._lock:
            changed = not self.complete
            if changed and self._kept is not None:
                self._journals = self._kept.load(self.dir)
            known = self.count
            for path, size in _sizes(self.dir):
                journal = self._journals.get(path.name)
                if journal is None:
                    journal = self._journals[path.name] = JournalIndex(path)
                changed = journal.poll(size) or changed
            if changed:
                self._found = self._hidden = self._totals = None
                if not self.complete and self._kept is not None and self.count != known:
                    self._kept.save(self.dir, self._journals)
            self.complete, self._end = True, None
            return changed

    def size(self) -> int:
        """Return how large its journals are, in bytes."""
        return sum(size for _, size in _sizes(self.dir))

    def ready(self) -> "RunIndex":
        """Return itself, read at least once."""
        with self._lock:
            if not self.complete:
                self.look()
        return self

    @property
    def info(self) -> RunInfo:
        """What `run.json` says; a stand-in where it is missing or damaged."""
        # Without the lock, which is held while a long journal is read.
        if self._info is None:
            try:
                self._info = read_info(self.dir)
            except (LedgerError, OSError):
                first = self._writers()[:1]
                started = first[0][1].started if first else 0.0
                name = self.dir.name
                return RunInfo(project="unknown", name=name, id=name, created=started)
        return self._info

    @property
    def id(self) -> str:
        """The identity, unique within the root."""
        return self.info.id

    @property
    def state(self) -> str:
        """Whether it is "finished", "running" or "stopped"; see `store.state`."""
        with self._lock:
            pairs = self._writers()
        return state_of([pair for pair in pairs if pair[1].purpose != DELIVERS])

    @property
    def count(self) -> int:
        """How many lines there are."""
        with self._lock:
            return sum(journal.count for journal in self._journals.values())

    @property
    def damaged(self) -> int:
        """How many lines were passed over because they were altered."""
        with self._lock:
            return sum(journal.damaged for journal in self._journals.values())

    @property
    def writers(self) -> list[WriterRecord]:
        """The first lines of the journals, the earliest first."""
        with self._lock:
            return [writer for _, writer in self._writers()]

    def findings(self) -> list[Finding]:
        """Return what there is by step; their records hold only name, step and times.

        `result` reads the whole of one.
        """
        with self._lock:
            if self._found is None:
                self._found = query.findings(self._attempts())
            return self._found

    def rest(self) -> None:
        """Let go of what `findings` keeps, about a kilobyte for each result."""
        with self._lock:
            self._found = None

    def results(
        self, name: str, step: int | None = None, *, superseded: bool = False
    ) -> list[Result]:
        """Return the results of an analysis, whole; see `Run.results`."""
        return [
            self.result(finding)
            for finding in self.findings()
            if finding.name == name
            and step in (None, finding.step)
            and (superseded or not finding.superseded)
        ]

    def result(self, finding: Finding) -> Result:
        """Read the records of a finding.

        Raises:
            LedgerError: When its line has changed since it was indexed.
        """
        values, drawn = finding.values_ref, finding.result_ref
        whole = dataclasses.replace(
            finding,
            values=self._read(values, ValuesRecord) if values else None,
            result=self._read(drawn, ResultRecord) if drawn else None,
        )
        return Result(self.dir, self.info, whole)

    def at(self, ref: RecordRef) -> Result:
        """Return the result that a record tells of.

        Raises:
            NotFound: When there is none.
        """
        for finding in self.findings():
            if (finding.result_ref or finding.values_ref) == ref:
                return self.result(finding)
        raise NotFound("The run has no such result; /api/runs/RUN/results lists them.")

    def suffix_of(self, digest: str) -> str | None:
        """Return the suffix of the file of this hash, if a result of the run has it."""
        with self._lock:
            journals = [journal for journal, _ in self._writers()]
        for journal in journals:
            place = journal.find(digest.encode("ascii"))
            if place < 0:
                continue
            seq = journal.columns["seq"][place]
            drawn = self._read(RecordRef(writer=journal.stem, seq=seq), ResultRecord)
            for part in drawn.parts:
                for suffix, found in part.blobs.items():
                    if found == digest:
                        return suffix
        return None

    def curve(self, name: str) -> Curve:
        """Return a metric by step; empty where the run has none of that name."""
        with self._lock:
            journals = [journal for journal, _ in self._writers()]
            return curve_of(journals, name, self._replaced())

    def rows(self) -> list[tuple[int, float, dict[str, float]]]:
        """Return step, wall time and numbers of each row of metrics, by step."""
        with self._lock:
            hidden = self._replaced()
            found = [
                row
                for journal, _ in self._writers()
                for row in journal.metric_rows(hidden)
            ]
        return sorted(found, key=lambda row: row[0])

    @property
    def metrics(self) -> list[str]:
        """The names of its metrics, in the order in which they came."""
        with self._lock:
            names = [name for journal, _ in self._writers() for name in journal.metrics]
        return list(dict.fromkeys(names))

    def totals(self) -> Totals:
        """Return what a table of runs says of it, kept until there is more."""
        with self._lock:
            if self._totals is None:
                self._totals = self._summed()
            return self._totals

    def glimpse(self) -> "RunIndex":
        """Return itself, or an index of the end of its newest journal, read at once."""
        if self.complete:
            return self
        sizes = _sizes(self.dir)
        if self._end is not None and self._end[0] == sizes:
            return self._end[1]
        end = RunIndex(self.dir)
        end._info = self._info
        for path, size in sizes:
            journal = end._journals[path.name] = JournalIndex(path)
            journal.peek(size, _GLIMPSE)
            if not journal.count:
                # Long lines, such as those of Views with a label for each token.
                journal.forget()
                journal.peek(size, 32 * _GLIMPSE)
        self._end = (sizes, end)
        return end

    def _summed(self) -> Totals:
        pairs = dict.fromkeys(
            pair for journal, _ in self._writers() for pair in journal.names_and_steps()
        )
        if self._replaced():
            # Not kept: a table of many runs must not hold what is in each.
            found = self._found or query.findings(self._attempts())
            shown = {(f.name, f.step) for f in found if not f.superseded}
            pairs = {pair: None for pair in pairs if pair in shown}
        return totals_of(pairs, {name: self.curve(name) for name in self.metrics})

    def _read(self, ref: RecordRef, cls: type[query.T]) -> query.T:
        with self._lock:
            journal = self._journals.get(f"{ref.writer}.jsonl")
            place = -1 if journal is None else journal.line_at(ref.seq)
            if journal is None or place < 0:
                raise LedgerError(f"There is no line {ref.seq} of {ref.writer}.")
            offset = journal.columns["offset"][place]
            length = journal.columns["length"][place]
        record = _line(journal.path, offset, length)
        if not isinstance(record, cls):
            raise LedgerError(
                f"{journal.path} has changed at byte {offset}: it holds no whole "
                f"{cls.TYPE} there."
            )
        return record

    def _replaced(self) -> frozenset[tuple[str, int]]:
        # Rows of metrics that a resumed attempt replaced; most runs have none.
        if self._hidden is None:
            resumed = any(
                journal.resumed or writer.resumed_at is not None
                for journal, writer in self._writers()
            )
            attempts = self._attempts() if resumed else []
            every = query.rows(attempts, superseded=True)
            shown = {ref for ref, _ in query.rows(attempts, superseded=False)}
            self._hidden = frozenset(
                (ref.writer, ref.seq) for ref, _ in every if ref not in shown
            )
        return self._hidden

    def _attempts(self) -> list[query.Attempt]:
        return [
            query.Attempt(writer=writer, lines=tuple(journal.stubs()))
            for journal, writer in self._writers()
        ]

    def _writers(self) -> list[tuple[JournalIndex, WriterRecord]]:
        pairs = [
            (journal, journal.writer or _unknown(self.dir, journal))
            for journal in list(self._journals.values())
        ]
        return sorted(pairs, key=lambda pair: (pair[1].started, pair[0].stem))


def _line(path: Path, offset: int, length: int) -> Record | None:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            value = parse_line(file.read(length))
        return None if value is None else record_from_json(value)
    except (OSError, ValueError):
        return None


def _sizes(directory: Path) -> Sequence[tuple[Path, int]]:
    try:
        with os.scandir(directory) as entries:
            found = [
                (directory / entry.name, entry.stat().st_size)
                for entry in entries
                if entry.name.endswith(".jsonl")
                and not entry.name.startswith(".")
                and entry.is_file()
            ]
    except OSError:
        return []
    return sorted(found)


def _unknown(directory: Path, journal: JournalIndex) -> WriterRecord:
    # The first line is damaged or not there yet.
    return WriterRecord(
        run=directory.name, writer=journal.stem, host="", pid=0, started=0.0
    )
