"""One run as its journals tell it, read again when they grow."""

import threading
from pathlib import Path
from typing import Self

from theseus_track.errors import LedgerError, NotFound, describe_unknown
from theseus_track.records import (
    MetricsRecord,
    Record,
    RecordRef,
    ResultRecord,
    RunInfo,
    WriterRecord,
)
from theseus_track.records.strict_json import Json
from theseus_track.store import html, query
from theseus_track.store.damage import Damage
from theseus_track.store.journal import JournalReader
from theseus_track.store.layout import RUN_JSON, journals
from theseus_track.store.probe import Probe, probes_of
from theseus_track.store.result import Result
from theseus_track.store.run_state import state
from theseus_track.store.runinfo import read_info
from theseus_track.store.series import Series

__all__ = ["Run"]


class Run:
    """One run: what it is, its results by analysis and step, and its metrics.

    It shows the ledger as it was when last refreshed. Thread-safe.

    Attributes:
        dir: The directory of the run.
    """

    def __init__(self, directory: Path) -> None:
        self.dir = directory
        self._lock = threading.RLock()
        self._readers: dict[str, JournalReader] = {}
        self._info: RunInfo | None = None
        self._info_damage: list[Damage] = []
        self._findings: list[query.Finding] | None = None
        self.refresh()

    def refresh(self) -> Self:
        """Read what was written since; only that is read."""
        with self._lock:
            for path in journals(self.dir):
                if path.stem not in self._readers:
                    self._readers[path.stem] = JournalReader(path)
            changed = [reader.poll() for reader in self._readers.values()]
            if any(changed):
                self._findings = None
            if self._info is None or self._info_damage:
                self._read_info()
        return self

    @property
    def info(self) -> RunInfo:
        """What `run.json` says; a stand-in where it is damaged."""
        with self._lock:
            return self._info or self._stand_in()

    @property
    def id(self) -> str:
        """The identity, unique within the root."""
        return self.info.id

    @property
    def name(self) -> str:
        """The name that people use."""
        return self.info.name

    @property
    def project(self) -> str:
        """The project that the run belongs to."""
        return self.info.project

    @property
    def state(self) -> str:
        """Whether it is "finished", "running" or "stopped"; see `store.state`."""
        return state(self)

    @property
    def steps(self) -> list[int]:
        """The steps that have a result, ascending."""
        return sorted({result.step for result in self.results()})

    @property
    def analyses(self) -> list[str]:
        """The NAMEs that have a result, in the order in which they came."""
        return list(dict.fromkeys(result.name for result in self.results()))

    @property
    def last_step(self) -> int | None:
        """The highest step of a result or metric, or None."""
        rows = [row.step for row in self.metrics()]
        return max([*self.steps, *rows], default=None)

    @property
    def damaged(self) -> list[Damage]:
        """What was passed over because it was altered or cannot be understood."""
        with self._lock:
            readers = self._readers.values()
            lines = [damage for reader in readers for damage in reader.damaged]
            return [*self._info_damage, *lines]

    def writers(self) -> list[tuple[JournalReader, WriterRecord]]:
        """Return the journals with their first lines, the earliest first."""
        with self._lock:
            pairs = [(r, self._first_line(r)) for r in self._readers.values()]
        return sorted(pairs, key=lambda pair: (pair[1].started, pair[0].stem))

    def records(self) -> list[tuple[RecordRef, Record]]:
        """Return every record and where it is, in the order of writing."""
        return [
            (line.ref, line.record)
            for attempt in self._attempts()
            for line in attempt.lines
        ]

    def metrics(self, *, superseded: bool = False) -> list[MetricsRecord]:
        """Return the rows of metrics, by step.

        Args:
            superseded: Whether to list what a resumed attempt replaced, too.
        """
        return query.metrics(self._attempts(), superseded=superseded)

    def results(
        self,
        name: str | None = None,
        step: int | None = None,
        *,
        superseded: bool = False,
    ) -> list[Result]:
        """Return results, by step.

        Args:
            name: The NAME or key of an analysis, or None for all.
            step: A step, or None for all.
            superseded: Whether to list what a newer one replaced, too.
        """
        with self._lock:
            found, info = self._found(), self.info
        results = [
            Result(self.dir, info, finding)
            for finding in found
            if step in (None, finding.step) and (superseded or not finding.superseded)
        ]
        if name is None:
            return results
        named = [result for result in results if result.name == name]
        return named or [result for result in results if result.key == name]

    def deliverable(self) -> list[tuple[RecordRef, ResultRecord | MetricsRecord]]:
        """Return what trackers show of the run, by step: nothing that was replaced.

        Results with something drawn, and rows of metrics, which come before the
        results of their step; of each, where it is in the ledger.
        """
        with self._lock:
            drawn: list[tuple[RecordRef, ResultRecord | MetricsRecord]] = [
                (finding.result_ref, finding.result)
                for finding in self._found()
                if finding.result is not None
                and finding.result_ref is not None
                and finding.result.parts
                and not finding.superseded
            ]
            rows = query.rows(self._attempts(), superseded=False)
        return sorted([*rows, *drawn], key=lambda pair: pair[1].step)

    @property
    def probes(self) -> dict[str, Probe]:
        """The batches that were stored, by name; of each name the latest."""
        return probes_of(self.dir, self.records())

    def __getitem__(self, name: str) -> Series:
        """Return the results of an analysis, by its NAME or key.

        Raises:
            NotFound: When it has none; the message lists those that have.
        """
        results = self.results(name)
        if not results:
            unknown = describe_unknown("analysis", name, self.analyses)
            raise NotFound(f"{unknown} Run: {self.name} (id {self.id}).")
        return Series(results[0].name, results)

    def to_json(self) -> dict[str, Json]:
        """Return its description, as the CLI's `--json` prints it."""
        info = self.info
        return {
            "project": info.project,
            "name": info.name,
            "id": info.id,
            "group": info.group,
            "tags": [*info.tags],
            "state": self.state,
            "created": info.created,
            "steps": [*self.steps],
            "last_step": self.last_step,
            "analyses": [*self.analyses],
            "dir": str(self.dir),
            "damaged": len(self.damaged),
        }

    def __repr__(self) -> str:
        return f"Run({self.project!r}, {self.name!r}, id={self.id!r}, {self.state})"

    def _repr_html_(self) -> str:
        rows: list[list[Json]] = [
            [series.name, len(series), series.steps[0], series.steps[-1]]
            for series in (self[name] for name in self.analyses)
        ]
        table = html.rows_table(("analysis", "results", "first", "last step"), rows)
        return html.captioned(
            f"{self.project} · {self.name} · {self.id} · {self.state}", table
        )

    def _found(self) -> list[query.Finding]:
        if self._findings is None:
            self._findings = query.findings(self._attempts())
        return self._findings

    def _attempts(self) -> list[query.Attempt]:
        return [
            query.Attempt(writer=writer, lines=tuple(reader.lines))
            for reader, writer in self.writers()
        ]

    def _read_info(self) -> None:
        self._info_damage = []
        try:
            self._info = read_info(self.dir)
        except (LedgerError, FileNotFoundError) as error:
            what = "missing" if isinstance(error, FileNotFoundError) else str(error)
            path = self.dir / RUN_JSON
            self._info_damage = [Damage(file=path, where="the file", what=what)]

    def _stand_in(self) -> RunInfo:
        first = next((writer for _, writer in self.writers()), None)
        run_id = first.run if first and first.run.strip() else self.dir.name
        started = first.started if first else 0.0
        return RunInfo(project="unknown", name=run_id, id=run_id, created=started)

    def _first_line(self, reader: JournalReader) -> WriterRecord:
        for line in reader.lines[:1]:
            if isinstance(line.record, WriterRecord):
                return line.record
        # The first line is damaged or not there yet: the file's name tells when.
        return WriterRecord(
            run=self.dir.name, writer=reader.stem, host="", pid=0, started=0.0
        )
