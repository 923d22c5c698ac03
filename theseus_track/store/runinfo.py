"""The `run.json` of a run: written once, whole, by whoever comes first."""

import contextlib
import secrets
from pathlib import Path

from theseus_track.errors import LedgerError
from theseus_track.records import RunInfo, dumps, loads
from theseus_track.records.codec import decode, encode
from theseus_track.store.layout import RUN_JSON

__all__ = ["keep_info", "read_info"]


def read_info(directory: Path) -> RunInfo:
    """Read the `run.json` of a run.

    Raises:
        FileNotFoundError: When there is none.
        LedgerError: When it cannot be read.
    """
    path = directory / RUN_JSON
    if path.exists() and not path.is_file():
        raise LedgerError(f"{path} cannot be read: it is no plain file. Move it away.")
    try:
        return decode(RunInfo, loads(path.read_bytes()))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise LedgerError(
            f"{path} cannot be read: {error} Move it away or restore it from a copy."
        ) from error


def keep_info(directory: Path, info: RunInfo) -> RunInfo:
    """Write `run.json` where there is none.

    Args:
        directory: The directory of the run; exists.
        info: What to write.

    Returns:
        What `run.json` says now, which is an earlier writer's if there was one.

    Raises:
        LedgerError: When an existing one cannot be read or is another run's.
        OSError: When it cannot be written.
    """
    path = directory / RUN_JSON
    if not path.exists():
        _create(path, dumps(encode(info), indent=2).encode("ascii") + b"\n")
    kept = read_info(directory)
    if kept.id != info.id:
        # Such as "Run" and "run" on a file system that ignores case.
        raise LedgerError(
            f"{directory} holds the run {kept.id!r}, so that {info.id!r} cannot be "
            "kept there. Choose another id."
        )
    return kept


def _create(path: Path, data: bytes) -> None:
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        partial.write_bytes(data)
        try:
            # Unlike a rename, a link never replaces what another process wrote.
            path.hardlink_to(partial)
        except FileExistsError:
            return
        except (OSError, NotImplementedError):
            partial.replace(path)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
