"""Which directory below a log directory shows a run, settled between processes."""

import hashlib
import os
import time
from pathlib import Path, PurePath
from typing import Final

from theseus_track.errors import BadInput, DeliveryError
from theseus_track.records import RunInfo, safe_name

try:
    import fcntl
except ImportError:  # pragma: no cover (Windows has no flock; then no lock is held)
    fcntl = None  # type: ignore[assignment]

__all__ = ["RESULTS", "Claim", "check_run"]

RESULTS: Final = "theseus"
_MARK = ".run"
_LONGEST = 150


class Claim:
    """A run's directory, and whether this process is the one that writes it.

    A mark in `<run>/theseus/` says which run the directory belongs to, since names
    may repeat. A lock on that mark, which ends with the process, says that
    somebody writes there.
    """

    def __init__(self, directory: Path, descriptor: int, *, sole: bool) -> None:
        """Use `Claim.take`."""
        self.directory = directory
        self.sole = sole
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, logdir: Path, run: str | None, info: RunInfo) -> "Claim":
        """Find or make the directory of a run.

        Args:
            logdir: The log directory.
            run: A directory below it; "" for the log directory itself; None to
                take the run's name.
            info: The run. If its directory belongs to another run already, the id
                is added.

        Raises:
            DeliveryError: When two other runs have both names.
        """
        first, second = _candidates(logdir, run, info)
        for directory in (first, second):
            descriptor = _open_mark(directory, info.id)
            if descriptor is not None:
                return cls(directory, descriptor, sole=_lock(descriptor))
        raise DeliveryError(
            f"{first} and {second} both show other runs than {info.id!r}. "
            "Choose another log directory."
        )

    @staticmethod
    def find(logdir: Path, run: str | None, info: RunInfo) -> Path:
        """Say which directory `take` would find or make; touches nothing."""
        first, second = _candidates(logdir, run, info)
        try:
            mark = (first / RESULTS / _MARK).read_bytes()
        except OSError:
            return first
        return first if mark == _mark_of(info.id) else second

    def release(self) -> None:
        """Let another process write the run."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)


def check_run(run: str | None) -> str | None:
    """Return a directory name for a run, or say why it cannot be one.

    Raises:
        BadInput: When it leads out of the log directory.
    """
    path = PurePath(run or "")
    if path.is_absolute() or ".." in path.parts:
        raise BadInput(
            f"run={run!r} leads out of the log directory; give a name below it."
        )
    return run


def _open_mark(directory: Path, run_id: str) -> int | None:
    """Mark a directory as a run's; None when it is another's."""
    mark = directory / RESULTS / _MARK
    mark.parent.mkdir(parents=True, exist_ok=True)
    text = _mark_of(run_id)
    try:
        descriptor = os.open(mark, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        if _read_mark(mark) != text:
            return None
        return os.open(mark, os.O_RDWR)
    os.write(descriptor, text)
    return descriptor


def _mark_of(run_id: str) -> bytes:
    return run_id.encode("utf-8", "surrogatepass")


def _candidates(logdir: Path, run: str | None, info: RunInfo) -> tuple[Path, Path]:
    first = logdir / (_directory_name(info.name) if run is None else run)
    beside = _directory_name(info.id)
    second = first / beside if first == logdir else Path(f"{first}-{beside}")
    return first, second


def _read_mark(mark: Path) -> bytes:
    """Read a mark; one that was created a moment ago may still be empty."""
    for _ in range(100):
        if text := mark.read_bytes():
            return text
        time.sleep(0.01)
    return b""


def _lock(descriptor: int) -> bool:
    """Become the writer, unless another process is; True without lock support."""
    if fcntl is None:  # pragma: no cover (Windows)
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # A file system without locks; the ledger's own state has judged before.
        return True
    return True


def _directory_name(text: str) -> str:
    name = safe_name(text)
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{name[:_LONGEST]}.{digest}"
