"""The one way into a ledger: a writer that appends records to files of its own."""

import contextlib
import os
import re
import secrets
import socket
import threading
import time
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from theseus_track import __version__
from theseus_track.errors import LedgerError
from theseus_track.records import (
    Beat,
    End,
    Record,
    RecordRef,
    RunInfo,
    WriterRecord,
    dumps,
    record_from_json,
    record_to_json,
)
from theseus_track.store.append import AppendFile
from theseus_track.store.blobs import put_blob
from theseus_track.store.entries import Entry, NewResult
from theseus_track.store.journal import TORN_MARK
from theseus_track.store.layout import journal_path, payload_path, run_dir
from theseus_track.store.machine import this_machine
from theseus_track.store.pack import Packer
from theseus_track.store.root import resolve_root, unusable
from theseus_track.store.runinfo import keep_info
from theseus_track.store.sizes import SizeWatch

__all__ = ["LedgerWriter"]


class LedgerWriter:
    """Appends records to one journal and one payload file, both its own.

    Thread-safe. A record is acknowledged when `append` returns: its arrays and
    files were handed to the operating system before its line, so it survives the
    death of this process at any moment (not a power cut: nothing is synced).

    Attributes:
        run_dir: The directory of the run.
        stem: The name of this writer: of its files, without their suffix.
        info: What `run.json` says; an earlier attempt's, if there was one.

    Example:
        >>> from theseus_track.records import MetricsRecord, RunInfo
        >>> from theseus_track.store import LedgerWriter, Store
        >>> info = RunInfo(project="demo", name="short", id="r2", created=0.0)
        >>> loss = MetricsRecord(step=1, wall_time=0.0, metrics={"loss": 2.5})
        >>> with LedgerWriter.create("results", info) as writer:
        ...     refs = writer.append(loss)
        >>> [row.metrics for row in Store("results").run("short").metrics()]
        [{'loss': 2.5}]
    """

    def __init__(
        self,
        directory: Path,
        info: RunInfo,
        journal: AppendFile,
        payload: AppendFile,
    ) -> None:
        self.run_dir = directory
        self.stem = journal.path.stem
        self.info = info
        self._journal = journal
        self._payload = payload
        self._sizes = SizeWatch(directory)
        self._lock = threading.Lock()
        self._lines = 0
        self._torn = False
        self._closed = False

    @classmethod
    def create(
        cls,
        root: str | os.PathLike[str] | None,
        info: RunInfo,
        *,
        purpose: str = "live",
        resumed_at: int | None = None,
    ) -> Self:
        """Make the directories, `run.json` where absent, and the writer's files.

        Args:
            root: The ledger's root, as for `resolve_root`; created if need be.
                Several processes may do this at once.
            info: The run. Where a run of that id exists, its own `run.json` stays.
            purpose: "live", "replay", "replot" or "sync".
            resumed_at: The first step that this attempt may write, >= 0.

        Returns:
            A writer whose first line is on disk.

        Raises:
            LedgerError: When the root cannot be written.
        """
        # Absolute, so that it does not follow the process to another directory.
        root = resolve_root(root)
        directory = run_dir(root, info.id)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            kept = keep_info(directory, info)
            journal, payload = _new_files(directory)
        except LedgerError:
            raise
        except OSError as error:
            raise unusable(root, error) from error
        writer = cls(directory, kept, journal, payload)
        first = WriterRecord(
            run=info.id,
            writer=writer.stem,
            host=socket.gethostname(),
            pid=os.getpid(),
            started=time.time(),
            purpose=purpose,
            resumed_at=resumed_at,
            package=__version__,
            machine=this_machine(),
        )
        try:
            with writer._lock:
                writer._commit([first])
        except LedgerError:
            writer._close_files()
            raise
        return writer

    def append(self, *entries: Entry) -> list[RecordRef]:
        """Append entries as one commit; they are acknowledged on return.

        Args:
            *entries: What to keep. All arrays are written first, then all lines
                in one write, so that a reader never sees a line without its arrays.

        Returns:
            Where each record is, in the order of the entries.

        Raises:
            BadInput: When an entry holds what a ledger cannot keep; nothing was
                written.
            LedgerError: When the files cannot be written, such as on a full disk,
                or the writer is closed. Earlier records stay readable, and
                the writer may be used again once there is room.
        """
        blobs = [
            (data, suffix)
            for entry in entries
            if isinstance(entry, NewResult)
            for part in entry.parts
            for suffix, data in part.blobs.items()
        ]
        with self._lock:
            self._check_open()
            packer = Packer(self._payload.size)
            records = [packer.record(entry) for entry in entries]
            for data, suffix in blobs:
                self.put_blob(data, suffix)
            payload = packer.payload()
            refs = self._commit(records, payload)
            drawn = sum(len(data) for data, _ in blobs)
            self._sizes.note(records, len(payload) + drawn)
            return refs

    def put_blob(self, data: bytes, suffix: str) -> str:
        """Keep a file under the hash of its content; the same twice is one file.

        Args:
            data: The content.
            suffix: The file suffix without its dot, such as "pdf".

        Returns:
            The SHA-256 of the data, in hex.

        Raises:
            LedgerError: When it cannot be written.
        """
        try:
            return put_blob(self.run_dir, data, suffix)
        except OSError as error:
            raise self._unwritten(error) from error

    def beat(self) -> None:
        """Give a sign of life; without one for 5 minutes a run counts as stopped."""
        self.append(Beat(time=time.time()))

    def close(self, *, complete: bool = True) -> None:
        """Write the last line and close the files; doing it twice is harmless.

        Args:
            complete: Whether the work was done; else the run counts as stopped.
        """
        with self._lock:
            if self._closed:
                return
            try:
                self._commit([End(time=time.time(), complete=complete)])
            finally:
                self._closed = True
                self._close_files()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _commit(self, records: list[Record], payload: bytes = b"") -> list[RecordRef]:
        # The lines are made before anything is written: a bad entry leaves no trace.
        first = self._lines + self._torn
        lines = [_line(record, first + i) for i, record in enumerate(records)]
        data = (TORN_MARK if self._torn else b"") + b"".join(lines)
        start = self._journal.size
        try:
            self._payload.write(payload)
            self._journal.write(data)
        except OSError as error:
            raise self._unwritten(error) from error
        finally:
            self._recount(data[: self._journal.size - start])
        return [RecordRef(writer=self.stem, seq=first + i) for i in range(len(records))]

    def _recount(self, written: bytes) -> None:
        # A write that stopped in the middle of a line leaves a torn one; the next
        # commit ends it with a mark, so that it damages nothing and is told
        # from damage. Lines are counted as they are in the file.
        self._lines += written.count(b"\n")
        if written:
            self._torn = not written.endswith(b"\n")

    def _check_open(self) -> None:
        if self._closed:
            raise LedgerError(
                f"The writer {self.stem} of run {self.info.id!r} is closed. "
                "Open the run again to go on."
            )

    def _close_files(self) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(self._payload.close)
            stack.callback(self._journal.close)

    def _unwritten(self, error: OSError) -> LedgerError:
        if isinstance(error, LedgerError):
            return error
        return LedgerError(
            f"The run {self.info.id!r} cannot be written in {self.run_dir}: "
            f"{error.strerror or error}. What was acknowledged before stays readable."
        )


def _line(record: Record, seq: int) -> bytes:
    value = record_to_json(record)
    # Raises BadInput: what cannot be read back must never be acknowledged.
    record_from_json(value)
    body = dumps({**value, "seq": seq}).encode("ascii")
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _new_files(directory: Path) -> tuple[AppendFile, AppendFile]:
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    host = re.sub(r"[^A-Za-z0-9]+", "_", socket.gethostname())[:40] or "host"
    stem = f"{moment}-{host}-{os.getpid()}-{secrets.token_hex(4)}"
    payload = AppendFile(payload_path(directory, stem))
    try:
        return AppendFile(journal_path(directory, stem)), payload
    except OSError:
        payload.close()
        raise
