"""The ledger's root: which directory it is, and what to say when it is unusable."""

import os
from pathlib import Path

from theseus_track.errors import LedgerError

__all__ = ["ROOT_VARIABLE", "resolve_root", "unusable"]

ROOT_VARIABLE = "THESEUS_ROOT"


def resolve_root(root: str | os.PathLike[str] | None = None) -> Path:
    """Return the root: the argument, else `$THESEUS_ROOT`, else `./results`.

    Args:
        root: A directory, which need not exist; `~` is expanded.

    Returns:
        The absolute path. Nothing is created.

    Example:
        >>> from theseus_track.store import resolve_root
        >>> resolve_root("/data/ledger").as_posix()
        '/data/ledger'
    """
    chosen = root or os.environ.get(ROOT_VARIABLE) or "results"
    return Path(chosen).expanduser().absolute()


def unusable(root: Path, error: OSError) -> LedgerError:
    """Return the error for a root in which nothing can be created or written."""
    reason = error.strerror or str(error)
    at = Path(str(error.filename)) if error.filename else root
    return LedgerError(
        f"The ledger at {root} cannot be written: {at}: {reason}. Choose a directory "
        f"that can be written, with root=, --root or ${ROOT_VARIABLE}."
    )
