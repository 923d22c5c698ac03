"""A claim on a run: that one process, and no other, does a certain thing to it."""

import contextlib
import json
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from theseus_track.errors import LedgerError
from theseus_track.records import dumps, safe_name
from theseus_track.store.machine import is_dead, this_machine
from theseus_track.store.run_state import WINDOW_SECONDS

__all__ = ["Claim", "claims_of"]

_SUFFIX = ".claim"
_FILE = re.compile(r"(.+)\.(\d+)\.claim")
_LONGEST = 120
_BEAT = 30.0


class Claim:
    """A file in the run's directory that says who is at work; a context.

    It is created exclusively and touched every half minute. One that is not touched
    for five minutes, or whose process is known to be dead, holds no longer. A file of
    its own number is made for each taking over, so that of two processes that find a
    dead claim only one gets the next number: no lock and no clock is needed.
    """

    def __init__(self, path: Path) -> None:
        """Use `Claim.take`."""
        self._path = path
        self._released = threading.Event()
        self._thread = threading.Thread(
            target=self._beat, name="theseus-claim", daemon=True
        )
        self._thread.start()

    @classmethod
    def take(cls, directory: Path, what: str) -> Self:
        """Claim a run for one thing.

        Args:
            directory: The directory of the run.
            what: What is done, such as "sync to wandb".

        Raises:
            LedgerError: When another process is at it, or nothing can be written.
        """
        stem = safe_name(what)[:_LONGEST]
        try:
            path = _create(directory, stem)
        except OSError as error:
            raise LedgerError(
                f"{directory} cannot be written: {error.strerror}."
            ) from error
        for other in _files(directory, stem):
            if other == path:
                continue
            if _holds(other, path):
                path.unlink(missing_ok=True)
                raise LedgerError(
                    f"Another process is at work already: {what}, {_holder(other)}. "
                    "Wait for it."
                )
            other.unlink(missing_ok=True)
        return cls(path)

    def release(self) -> None:
        """Give it up; doing it twice is harmless."""
        self._released.set()
        self._path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()

    def _beat(self) -> None:
        while not self._released.wait(_BEAT):
            with contextlib.suppress(OSError):
                os.utime(self._path)


def claims_of(directory: Path) -> list[str]:
    """Say who is at work on a run besides its writers, one line for each."""
    lines = []
    for path in sorted(directory.glob(f"*{_SUFFIX}")):
        with contextlib.suppress(OSError):
            if _young(path, time.time()):
                lines.append(f"{path.name.split('.')[0]}: {_holder(path)}")
    return lines


def _create(directory: Path, stem: str) -> Path:
    content = dumps(
        {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "machine": this_machine(),
            "started": time.time(),
        }
    )
    while True:
        number = max((_number(path) for path in _files(directory, stem)), default=0)
        path = directory / f"{stem}.{number + 1}{_SUFFIX}"
        with contextlib.suppress(FileExistsError), path.open("x") as file:
            file.write(content)
            return path


def _files(directory: Path, stem: str) -> Iterator[Path]:
    for path in sorted(directory.glob(f"*{_SUFFIX}")):
        match = _FILE.fullmatch(path.name)
        if match is not None and match[1] == stem:
            yield path


def _number(path: Path) -> int:
    match = _FILE.fullmatch(path.name)
    return int(match[2]) if match else 0


def _holds(other: Path, ours: Path) -> bool:
    # The file server's clock against itself: ours was made just now.
    try:
        return _young(other, ours.stat().st_mtime)
    except FileNotFoundError:
        return False


def _young(path: Path, now: float) -> bool:
    told = _read(path)
    pid = told.get("pid")
    known = told.get("machine") and told["machine"] == this_machine()
    if known and isinstance(pid, int) and is_dead(pid):
        return False
    return now - path.stat().st_mtime < WINDOW_SECONDS


def _holder(path: Path) -> str:
    told = _read(path)
    return f"process {told.get('pid', '?')} on {told.get('host', '?')}"


def _read(path: Path) -> dict[str, object]:
    # One that was created a moment ago may still be empty.
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
