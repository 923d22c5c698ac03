"""Files named by their content: the figures and JSON values of results."""

import contextlib
import hashlib
import re
import secrets
from pathlib import Path

from theseus_track.errors import BadInput, LedgerError
from theseus_track.store.layout import BLOB_SUFFIX, blob_path

__all__ = ["digest_of", "put_blob", "read_blob"]

_DIGEST = re.compile(r"[0-9a-f]{64}")


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of the data, in hex."""
    return hashlib.sha256(data).hexdigest()


def put_blob(run: Path, data: bytes, suffix: str) -> str:
    """Write a blob unless it is there already; readers never see half of it.

    Args:
        run: The directory of the run.
        data: The content.
        suffix: The file suffix without its dot, such as "pdf".

    Returns:
        The SHA-256 of the data, in hex.

    Raises:
        BadInput: When the suffix is not 1 to 8 of `a-z0-9`.
        OSError: When it cannot be written; nothing is left behind then.
    """
    if not BLOB_SUFFIX.fullmatch(suffix):
        raise BadInput(f"The suffix {suffix!r} must be 1 to 8 of a-z 0-9.")
    digest = digest_of(data)
    path = blob_path(run, digest, suffix)
    # A size that differs is what a power cut leaves of a file: written again.
    if path.is_file() and path.stat().st_size == len(data):
        return digest
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
    return digest


def read_blob(path: Path, digest: str) -> bytes:
    """Read a blob and check that it is what was written.

    Args:
        path: The file, as `blob_path` names it.
        digest: The SHA-256 that its record names.

    Raises:
        LedgerError: When it is missing, cannot be read or was altered.
    """
    # A record of somebody else's ledger must not name a file outside, or a device.
    sound = _DIGEST.fullmatch(digest) and path.stem == digest
    if not sound or not BLOB_SUFFIX.fullmatch(path.suffix[1:]):
        raise LedgerError(f"The record names {digest!r:.80}, which is no file of ours.")
    try:
        data = path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise LedgerError(f"{path} cannot be read: {error.strerror}.") from error
    if data is None:
        raise LedgerError(f"{path} cannot be read: it is missing or no plain file.")
    if digest_of(data) != digest:
        raise LedgerError(f"{path} is damaged: its content has changed.")
    return data
