"""Deletes a run from the ledger: the only thing that ever deletes there."""

import dataclasses
import secrets
import shutil

from theseus_track.errors import LedgerError
from theseus_track.store.claim import claims_of
from theseus_track.store.run import Run
from theseus_track.store.run_state import RUNNING

__all__ = ["Holdings", "holdings", "remove"]

_GRAVE = ".deleted-"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """What a run takes on the disk.

    Attributes:
        files: How many files.
        bytes: What they hold together.
        results: How many results there are, superseded ones included.
    """

    files: int
    bytes: int
    results: int


def holdings(run: Run) -> Holdings:
    """Count what deleting a run would delete."""
    sizes = [path.stat().st_size for path in run.dir.rglob("*") if path.is_file()]
    results = run.results(superseded=True)
    return Holdings(files=len(sizes), bytes=sum(sizes), results=len(results))


def remove(run: Run, *, assume_stopped: bool = False) -> None:
    """Delete a run from the ledger, for good; checkpoints and trackers keep theirs.

    Args:
        run: The run.
        assume_stopped: Delete it although its files grew lately, as when the clock
            of a file server misleads.

    Raises:
        LedgerError: When it is still written, somebody delivers it, or it cannot be
            deleted.
    """
    at_work = claims_of(run.refresh().dir)
    if run.state == RUNNING and not assume_stopped:
        raise LedgerError(
            f"The run {run.name!r} (id {run.id}) is running: it was written within the "
            "last five minutes. Stop it first; if it is dead, wait, or assume that it "
            "is stopped (--assume-stopped)."
        )
    if at_work and not assume_stopped:
        raise LedgerError(
            f"The run {run.name!r} (id {run.id}) is in use: {'; '.join(at_work)}. Wait "
            "for it, or assume that it is stopped (--assume-stopped)."
        )
    for unfinished in run.dir.parent.parent.glob(f"{_GRAVE}*"):
        shutil.rmtree(unfinished, ignore_errors=True)
    # It is gone in one moment; a reader never sees half of it.
    grave = run.dir.parent.parent / f"{_GRAVE}{secrets.token_hex(8)}"
    try:
        run.dir.rename(grave)
        shutil.rmtree(grave)
    except OSError as error:
        raise LedgerError(
            f"{run.dir} cannot be deleted: {error.strerror or error}."
        ) from error
