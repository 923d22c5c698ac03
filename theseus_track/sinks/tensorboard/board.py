"""In which directory of a run an item is shown, and when a directory is made anew."""

import collections
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from theseus_track.records import Item, MetricsItem
from theseus_track.sinks.contract import Backfill, Receipt
from theseus_track.sinks.seen import Seen
from theseus_track.sinks.tensorboard.claim import RESULTS, Claim
from theseus_track.sinks.tensorboard.events import Value
from theseus_track.sinks.tensorboard.rebuild import Drawn, finish_rebuild, rebuild
from theseus_track.sinks.tensorboard.subruns import SubRuns
from theseus_track.sinks.tensorboard.values import values_or_why

__all__ = ["Board"]


@dataclasses.dataclass(slots=True)
class _Kind:
    """Where results are, or metrics.

    Attributes:
        first: The directory of what comes in order.
        subruns: That one and those of late steps, as this process writes them.
        every: Gives all that is to be shown, when the directory may be made anew.
        stale: Whether it is to be.
    """

    first: Path
    subruns: SubRuns
    every: Callable[[], Iterable[Item]] | None
    stale: bool = False


class Board:
    """The event files of one run that this process writes.

    One item is one event: all of it is shown or nothing.
    """

    def __init__(
        self,
        claim: Claim,
        run_id: str,
        backfill: Backfill | None = None,
        *,
        at_once: bool = False,
    ) -> None:
        """Finish what an earlier process left undone.

        Args:
            claim: The run's directory.
            run_id: The id of the run, for the command that shows what was cut.
            backfill: All that the ledger has; a late step then has the file made anew.
            at_once: Whether that is done for the first late step, and for no other,
                instead of when all is written.
        """
        self._at_once = at_once
        self._run = claim.directory
        self._run_id = run_id
        # What was written one by one, and what was when a file was made anew.
        self._seen = [Seen()]
        self._notes: collections.Counter[str] = collections.Counter()
        # Nobody writes there: not on this machine, nor where the training was.
        alone = claim.sole and backfill is not None and backfill.state != "running"
        results, metrics = (
            (backfill.results, backfill.metrics)
            if alone and backfill is not None
            else (None, None)
        )
        first = self._run / RESULTS
        self._results = self._kind(first, f"{RESULTS}-replay-", claim, results)
        self._metrics = self._kind(self._run, f"{RESULTS}-metrics-", claim, metrics)

    def show(self, item: Item) -> Receipt:
        """Append one item.

        Raises:
            OSError: When the disk does not take it; nothing of it is left there.
        """
        if self._is_shown(item):
            return Receipt("written", "was here already")
        values = values_or_why(item, self._run_id)
        if isinstance(values, Receipt):
            return values
        receipt = self._place(item, values)
        self._seen[0].add(item)
        return receipt

    def settle(self) -> None:
        """Make anew what has to be, and let all survive a loss of power.

        Raises:
            OSError: When the disk does not take it; what was shown is shown still.
        """
        for kind in (self._results, self._metrics):
            if kind.stale and kind.every is not None:
                self._make_anew(kind, kind.every)
            kind.subruns.sync()

    def close(self) -> None:
        """Close the event files."""
        self._results.subruns.close()
        self._metrics.subruns.close()

    def notes(self) -> tuple[str, ...]:
        """Say, once for each, which directories are not as one would expect."""
        return tuple(
            f"{note} ({count} items)" if count > 1 else note
            for note, count in self._notes.items()
        )

    def _kind(
        self,
        first: Path,
        later: str,
        claim: Claim,
        every: Callable[[], Iterable[Item]] | None,
    ) -> _Kind:
        if claim.sole:
            finish_rebuild(first)
        place = first if claim.sole else None
        subruns = SubRuns(self._run, first=place, later=later)
        return _Kind(first=first, subruns=subruns, every=every)

    def _place(self, item: Item, values: Sequence[Value]) -> Receipt:
        """Append an item, or leave it to the file that is made anew."""
        kind = self._metrics if isinstance(item, MetricsItem) else self._results
        tags = [value.tag for value in values]
        if kind.every is not None and not kind.stale:
            kind.stale = kind.subruns.is_late(tags, item.step) or (
                not self._at_once and bool(kind.subruns.all_later())
            )
        if kind.stale and kind.every is not None and self._at_once:
            self._make_anew(kind, kind.every)
            kind.every = None
            if self._is_shown(item):
                return Receipt("written")
        if kind.stale:
            return Receipt("deferred")
        subrun = kind.subruns.place(tags, item.step)
        subrun.write(values, step=item.step, wall_time=item.wall_time)
        if subrun.directory == kind.first:
            return Receipt("written")
        where = f"{self._run.name}/{subrun.directory.name}"
        self._notes[f"late steps are shown in {where}"] += 1
        return Receipt("written", f"shown in {where}: its step came late")

    def _make_anew(self, kind: _Kind, every: Callable[[], Iterable[Item]]) -> None:
        later = kind.subruns.all_later()
        kind.subruns.close()
        seen = Seen()
        rebuild(kind.first, later, self._drawn(every(), seen))
        self._seen.append(seen)
        kind.stale = False
        kind.subruns.begin_again(kind.first)
        note = f"{kind.first} was made anew, sorted by step: restart TensorBoard"
        self._notes[note] = 1

    def _drawn(self, items: Iterable[Item], seen: Seen) -> Iterator[Drawn]:
        for item in items:
            values = values_or_why(item, self._run_id)
            if not isinstance(values, Receipt):
                yield item, values
                seen.add(item)

    def _is_shown(self, item: Item) -> bool:
        return any(item in seen for seen in self._seen)
