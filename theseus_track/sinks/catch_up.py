"""sync: delivers what the sinks of a run do not show yet, from the ledger alone."""

import dataclasses
import os
from collections.abc import Iterable
from pathlib import Path

from theseus_track.errors import BadInput, DeliveryError, TheseusError
from theseus_track.records import Delivered, FigureItem, JsonItem
from theseus_track.sinks.contract import Changes
from theseus_track.sinks.registry import Destination, destination
from theseus_track.sinks.report import SinkReport
from theseus_track.sinks.syncing import How, Syncing, Tell
from theseus_track.store import Run, Store

__all__ = ["SyncReport", "announce", "sync"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """What a sync did; print it.

    Attributes:
        run: The id of the run.
        sinks: One report for each sink.
        notes: What the sinks have to say about where things are.
    """

    run: str
    sinks: tuple[SinkReport, ...]
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every sink shows everything that it takes."""
        return all(report.complete for report in self.sinks)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.sinks), *self.notes])


def sync(
    run: str | Run,
    *,
    to: Iterable[str] = (),
    root: str | os.PathLike[str] | None = None,
    again: bool = False,
    assume_stopped: bool = False,
    companion: bool = False,
    timeout: float = 3600.0,
    tell: Tell | None = None,
) -> SyncReport:
    """Deliver what the trackers of a run do not show yet, in step order.

    Needs nothing but the ledger. What has a mark there is left alone, so that doing
    it twice changes nothing; what failed before is tried again. Of a training that
    still runs, what it delivers itself is left to it.

    Args:
        run: A run, or its id, its name, or the beginning of one.
        to: Sinks as in `open_run`: `NAME`, or `NAME:TARGET` for another place. Also
            one that the run never had. Default: those that the run was started with,
            and those that it was delivered to since.
        root: The ledger's root; `$THESEUS_ROOT`, else `./results`, when None.
        again: Deliver also what has a mark, for a tracker that lost it. One that
            cannot replace what it shows will show it twice.
        assume_stopped: Take the run for stopped although its files grew lately, as
            when the clock of a file server misleads.
        companion: Leave a W&B run that shows it already as it is, and show the
            results in one beside it, in its group.
        timeout: The longest wait for each sink to close, in seconds.
        tell: Called as the work goes on.

    Returns:
        One report for each sink.

    Raises:
        NotFound: When there is no such run.
        BadInput: When a sink has no such name, or the run has none and `to` is empty.

    Example:
        >>> from theseus_track.records import MetricsRecord, RunInfo
        >>> from theseus_track.store import LedgerWriter
        >>> info = RunInfo(project="demo", name="late", id="r3", created=0.0)
        >>> loss = MetricsRecord(step=1, wall_time=0.0, metrics={"loss": 2.5})
        >>> with LedgerWriter.create("results", info) as writer:
        ...     refs = writer.append(loss)
        >>> print(sync("late", root="results", to=["memory"]))
        memory: 1 delivered, 0 pending, 0 failed
        >>> print(sync("late", root="results", to=["memory"]))
        memory: 0 delivered, 0 pending, 0 failed
    """
    found = run if isinstance(run, Run) else Store(root).run(run)
    places, where = _places(found, to), _root_of(found)
    how = How(
        again=again,
        assume_stopped=assume_stopped,
        timeout=timeout,
        tell=tell,
        companion=companion,
    )
    done = [Syncing(found, place, where, how).run() for place in places]
    return SyncReport(
        run=found.id,
        sinks=tuple(report for report, _ in done),
        notes=tuple(note for _, notes in done for note in notes),
    )


def announce(
    run: Run,
    planned: Iterable[FigureItem | JsonItem] = (),
    *,
    to: Iterable[str] = (),
    companion: bool = False,
) -> dict[str, Changes | TheseusError]:
    """Say what a `sync` would change in the trackers of a run; touches nothing.

    Args:
        run: The run.
        planned: What will be in its ledger besides, by step.
        to: As for `sync`.
        companion: As for `sync`.

    Returns:
        What `sync` calls a sink -> what it would change, or why that cannot be told.

    Raises:
        BadInput: As `sync` does.
    """
    how = How(
        again=False, assume_stopped=False, timeout=0.0, tell=None, companion=companion
    )
    later = tuple(planned)
    return {
        place.mark: _changes(Syncing(run, place, _root_of(run), how), later)
        for place in _places(run, to)
    }


def _changes(
    syncing: Syncing, planned: Iterable[FigureItem | JsonItem]
) -> Changes | TheseusError:
    try:
        return syncing.changes(planned)
    except BadInput:
        raise
    # A sink raises what its tracker raises; the others are asked all the same.
    except Exception as error:  # noqa: BLE001
        line = str(error).strip().split("\n", 1)[0]
        return DeliveryError(f"it cannot be asked: {line}")


def _root_of(run: Run) -> Path:
    return run.dir.parent.parent


def _places(run: Run, to: Iterable[str]) -> list[Destination]:
    """Return the places that are asked for, else those of the run."""
    where = _root_of(run)
    asked = [destination(spec, run.info, where) for spec in to]
    places = asked or _known(run, where)
    if not places:
        raise BadInput(
            f"The run {run.name!r} (id {run.id}) was started without a tracker. "
            "Say where to show it, such as --to tensorboard:logs."
        )
    return places


def _known(run: Run, root: Path) -> list[Destination]:
    """Return the places of a run: its own, and those that it was delivered to since."""
    marked = (r.sink for _, r in run.records() if isinstance(r, Delivered))
    places = []
    for spec in dict.fromkeys([*run.info.sinks, *marked]):
        try:
            places.append(destination(spec, run.info, root))
        except BadInput:
            # A sink that was given as an object has no name to be found by.
            places.append(Destination(spec=spec, mark=spec))
    return places
