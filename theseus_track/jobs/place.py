"""Where a training's run goes: its root, identity and sinks, checked beforehand."""

import dataclasses
import os
import secrets
from pathlib import Path

from theseus_track.errors import BadInput, LedgerError, NotFound
from theseus_track.records import safe_name
from theseus_track.run.rank import decided_by_rank_zero
from theseus_track.sinks import check_sink
from theseus_track.store import Run, Store, resolve_root

__all__ = ["Place", "Settled", "saved_in", "settle"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What the user said of a run; the fields as in `Trainer.__call__`.

    Attributes:
        at: The step of the state that the Trainer holds already, restored from a
            checkpoint; None when `resume` shall find the latest.
    """

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
    at: int | None = None

    def shown_in(self, asked: "Place") -> "Place":
        """Return this place with the trackers and the strictness of another.

        Raises:
            BadInput: When the other says who the run is, which is decided.
        """
        silent = Place(
            root=None,
            project="default",
            name=asked.name,
            id=None,
            group=None,
            tags=(),
            sinks=asked.sinks,
            tensorboard=asked.tensorboard,
            resume=False,
            strict=asked.strict,
        )
        if asked != silent:
            raise BadInput(
                f"The run is {self.name!r} already, chosen by quick. Give only sinks, "
                "tensorboard and strict."
            )
        return dataclasses.replace(
            self, sinks=asked.sinks, tensorboard=asked.tensorboard, strict=asked.strict
        )


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
    """Check a Place and decide its id, once for all processes; writes nothing.

    Raises:
        BadInput: When a sink is unknown, or the id is taken and not resumed.
        LedgerError: When the root cannot be written.
        NotFound: When the run to resume does not exist.
    """
    for spec in place.sinks:
        check_sink(spec)
    root = resolve_root(place.root)

    def decide() -> str:
        _check_writable(root)
        return _resumed_id(root, place) if place.resume else _fresh_id(root, place)

    run_id = decided_by_rank_zero(decide)
    return Settled(
        root=root,
        id=run_id,
        checkpoints=root / "checkpoints" / safe_name(run_id),
    )


def saved_in(run: Run) -> Path | None:
    """Return the directory of a run's checkpoints, or None when there is none.

    Below the run's own root, which may have been moved with them; else where
    `run.json` says.
    """
    own = run.dir.parent.parent / "checkpoints" / safe_name(run.id)
    named = [] if run.info.checkpoints is None else [Path(run.info.checkpoints)]
    return next((place for place in (own, *named) if place.is_dir()), None)


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
