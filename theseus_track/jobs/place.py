"""Where a training's run goes: its root, identity and sinks, checked beforehand."""

import dataclasses
import os
import secrets
from pathlib import Path

from theseus_track.errors import BadInput, LedgerError, NotFound
from theseus_track.records import safe_name
from theseus_track.sinks import check_sink
from theseus_track.store import Store, resolve_root

__all__ = ["Place", "Settled", "settle"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What the user said of a run; the fields as in `Trainer.__call__`."""

    root: str | os.PathLike[str] | None
    project: str
    name: str
    id: str | None
    group: str | None
    tags: tuple[str, ...]
    sinks: tuple[str, ...]
    tensorboard: str | os.PathLike[str] | None
    resume: bool
    strict: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What follows from a Place.

    Attributes:
        root: The absolute root.
        id: The run's id.
        checkpoints: Where its checkpoints go; absolute, as Orbax wants it.
    """

    root: Path
    id: str
    checkpoints: Path


def settle(place: Place) -> Settled:
    """Check a Place and decide its id; writes nothing.

    Raises:
        BadInput: When a sink is unknown, or the id is taken and not resumed.
        LedgerError: When the root cannot be written.
        NotFound: When the run to resume does not exist.
    """
    for spec in place.sinks:
        check_sink(spec)
    root = resolve_root(place.root)
    _check_writable(root)
    run_id = _resumed_id(root, place) if place.resume else _fresh_id(root, place)
    return Settled(
        root=root,
        id=run_id,
        checkpoints=root / "checkpoints" / safe_name(run_id),
    )


def _check_writable(root: Path) -> None:
    """Say beforehand what creating the ledger would say after the model is built."""
    existing = next(p for p in (root, *root.parents) if p.exists())
    if not existing.is_dir():
        reason = f"{existing} is not a directory"
    elif not os.access(existing, os.W_OK | os.X_OK):
        reason = f"{existing} is not writable"
    else:
        return
    raise LedgerError(
        f"The ledger at {root} cannot be written: {reason}. Choose a directory that "
        "can be written, with root=, --root or $THESEUS_ROOT."
    )


def _resumed_id(root: Path, place: Place) -> str:
    return Store(root).run(place.id or place.name).id


def _fresh_id(root: Path, place: Place) -> str:
    if place.id is None:
        return secrets.token_hex(4)
    try:
        taken = any(run.id == place.id for run in Store(root).runs())
    except NotFound:
        taken = False
    if taken:
        raise BadInput(
            f"The run {place.id!r} exists in {root} already. Give another id, or go on "
            "with that run by resume=True."
        )
    return place.id
