"""Chooses the W&B run that shows a run, and how rows are written to it."""

import dataclasses
from typing import Any, Literal

from theseus_track.records import RunInfo
from theseus_track.sinks.wandb.address import Address, known_place
from theseus_track.sinks.wandb.begin import (
    SOURCE,
    begin,
    begin_companion,
    companion_address,
    own_address,
    take_up,
)
from theseus_track.sinks.wandb.readback import Told, told_by
from theseus_track.sinks.wandb.remote import RemoteRun, find, is_online

__all__ = ["Chosen", "Goal", "choose", "choose_afterwards", "choose_beside", "goal"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A W&B run, and what we may do in it.

    Attributes:
        run: The `wandb.Run`.
        rows: `ride`: in those of the user, who goes on logging. `wait`: in our own,
            each held until its figures are there. `append`: in our own, at once.
        counts: Whether W&B's own step can be the training step.
        metrics: Whether it shows the metrics; where a user logs, those are theirs.
        notes: Where the results are, if not where one would look first.
        shown: What it shows already and need not be delivered again.
    """

    run: Any
    rows: Literal["ride", "wait", "append"]
    counts: bool
    metrics: bool
    notes: tuple[str, ...] = ()
    shown: Told = dataclasses.field(default_factory=Told)

    @property
    def owned(self) -> bool:
        """Whether nobody else logs to it, and we finish it."""
        return self.rows != "ride"


def choose(run: Any, info: RunInfo, target: Address) -> Chosen:
    """Choose for a training that goes on.

    Args:
        run: The user's W&B run, or None to begin one.
        info: The run of the ledger.
        target: Where to begin one.

    Raises:
        Exception: Whatever wandb raises when no run can be begun.
    """
    if run is not None:
        return Chosen(run=run, rows="ride", counts=False, metrics=False)
    place = known_place(info)
    if place is not None and place.id:
        # It was the user's, who may go on with it: two writers overwrite each other.
        return choose_beside(info, target)
    return Chosen(run=begin(info, target), rows="wait", counts=True, metrics=True)


def choose_beside(info: RunInfo, target: Address) -> Chosen:
    """Choose a companion run.

    Raises:
        Exception: Whatever wandb raises when no run can be begun.
    """
    place = known_place(info) or target
    run = begin_companion(info, target if target.project else place)
    return Chosen(run=run, rows="wait", counts=True, metrics=not place.id)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Where what is delivered afterwards goes, decided before anything is begun.

    Attributes:
        how: `begin`: a run of ours, new or taken up. `take up`: a run of the user's.
            `beside`: a companion of the run.
        address: Where it is, or will be.
        place: What it is begun from: where the run is, or where the user wants it.
        why: Why it is beside the run, else "".
        remote: What the server said of a run of the user's.
    """

    how: Literal["begin", "take up", "beside"]
    address: Address
    place: Address
    why: str = ""
    remote: RemoteRun | None = None

    @property
    def metrics(self) -> bool:
        """Whether it shows the metrics: where a user logs, those are theirs."""
        return self.how == "begin" or (self.how == "beside" and not self.place.id)


def goal(
    info: RunInfo, target: Address, *, running: bool, companion: bool = False
) -> Goal:
    """Decide for what is delivered from the ledger; asks W&B and begins nothing.

    A run that somebody may still be writing is never taken up: both would number
    their rows from the same place, and one would overwrite those of the other
    (wandb#10349). Where that cannot be known, a run beside it takes the results.

    Args:
        info: The run of the ledger.
        target: Where the user wants it; without an id, where it was shown before.
        running: Whether the ledger says that it is being written still.
        companion: Whether the user wants it beside the run.

    Raises:
        Exception: Whatever wandb raises when it cannot be asked.
    """
    place = _place(info, target)
    if companion:
        beside = place or target
        asked = beside if beside.id else own_address(info, beside)
        return _aside(info, beside, f"{asked} is left as it is")
    if place is None:
        # Never shown there: nothing is there that could be harmed.
        return Goal(how="begin", address=own_address(info, target), place=target)
    asked = place if place.id else own_address(info, place)
    remote, why = _look(asked, info, running=running)
    if remote is None:
        return _aside(info, place, why)
    if _is_ours(remote, info):
        return Goal(how="begin", address=asked, place=place)
    if not place.id:
        return _aside(info, place, f"{asked} was begun by somebody else")
    return Goal(how="take up", address=asked, place=place, remote=remote)


def choose_afterwards(info: RunInfo, found: Goal) -> Chosen:
    """Begin or take up what was decided for what is delivered from the ledger.

    Raises:
        Exception: Whatever wandb raises when it cannot be reached.
    """
    if found.remote is not None:
        return _append(take_up(found.remote), counts=False, metrics=False)
    if found.how == "begin":
        return _append(begin(info, found.place))
    return _beside(info, found.place, found.why)


def _aside(info: RunInfo, place: Address, why: str) -> Goal:
    address = companion_address(info, place)
    return Goal(how="beside", address=address, place=place, why=why)


def _place(info: RunInfo, target: Address) -> Address | None:
    """Return where the run was shown; without an id it was begun or joined by us."""
    known = known_place(info)
    if target.id or known is None:
        return target if target.id else None
    here = target.project in ("", known.project)
    return known if here and target.entity in ("", known.entity) else None


def _look(
    address: Address, info: RunInfo, *, running: bool
) -> tuple[RemoteRun | None, str]:
    """Return the run if it can be taken up; else why not."""
    if running:
        return None, f"{address} may still be written"
    if not is_online():
        return None, f"W&B is offline, and {address} cannot be looked at"
    remote = find(address)
    if remote is None:
        return None, f"W&B has no run {address}"
    # Of a run of ours the ledger knows better: W&B calls a killed one "running".
    if not (remote.over or _is_ours(remote, info)):
        return None, f"{address} is not finished"
    return remote, ""


def _is_ours(remote: RemoteRun, info: RunInfo) -> bool:
    return remote.config.get(SOURCE) == info.id


def _append(run: Any, *, counts: bool = True, metrics: bool = True) -> Chosen:
    return Chosen(
        run=run, rows="append", counts=counts, metrics=metrics, shown=told_by(run)
    )


def _beside(info: RunInfo, place: Address, why: str) -> Chosen:
    run = begin_companion(info, place)
    there = Address(entity=run.entity or "", project=run.project or "", id=run.id)
    note = f"{why}; the results are in {there}, in the same group"
    return dataclasses.replace(_append(run, metrics=not place.id), notes=(note,))
