"""Where the files of a ledger are and what they are called."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from theseus_track.records import safe_name

__all__ = [
    "BLOB_SUFFIX",
    "RUNS",
    "RUN_JSON",
    "blob_path",
    "journal_path",
    "journals",
    "payload_path",
    "run_dir",
]

RUNS = "runs"
RUN_JSON = "run.json"
BLOB_SUFFIX = re.compile(r"[a-z0-9]{1,8}")

# The common file systems allow 255 bytes in a name; some tools add a suffix.
_NAME_LIMIT = 200


def run_dir(root: Path, run_id: str) -> Path:
    """Return the directory of the run with this id, existing or not.

    An id too long for a file name keeps its beginning and is told apart by its
    hash; the `..` between them never occurs in a safe name.
    """
    name = safe_name(run_id)
    if len(name) > _NAME_LIMIT:
        text = run_id.encode("utf-8", "surrogatepass")
        name = f"{name[:120]}..{hashlib.sha256(text).hexdigest()[:32]}"
    return root / RUNS / name


def journal_path(run: Path, stem: str) -> Path:
    """Return the journal of a writer."""
    return run / f"{stem}.jsonl"


def payload_path(run: Path, stem: str) -> Path:
    """Return the array file of a writer."""
    return run / f"{stem}.bin"


def blob_path(run: Path, digest: str, suffix: str) -> Path:
    """Return the file of a blob, by its SHA-256 in hex."""
    return run / "blobs" / digest[:2] / f"{digest}.{suffix}"


def journals(run: Path) -> Iterator[Path]:
    """Yield the journals of a run, by name: the earliest writer first."""
    found = (p for p in run.glob("*.jsonl") if not p.name.startswith("."))
    # Reading a pipe that somebody put there would never end.
    yield from sorted(path for path in found if path.is_file())
