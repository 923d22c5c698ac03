"""The sink that shows a run in W&B."""

import importlib
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from theseus_track.errors import BadInput, DeliveryError
from theseus_track.records import Item, MetricsItem, RunInfo
from theseus_track.sinks.contract import Backfill, Capabilities, Changes, Receipt
from theseus_track.sinks.seen import Seen
from theseus_track.sinks.wandb.address import parse
from theseus_track.sinks.wandb.choice import (
    Chosen,
    Goal,
    choose,
    choose_afterwards,
    choose_beside,
    goal,
)
from theseus_track.sinks.wandb.farewell import Farewell
from theseus_track.sinks.wandb.library import check_installed, current_run
from theseus_track.sinks.wandb.readback import Told

if TYPE_CHECKING:
    from theseus_track.sinks.wandb.place import Place

__all__ = ["WandbSink"]

_LAST_STEP: Final = 2**63 - 1


class WandbSink:
    """Writes rows of a W&B run as the package's docstring tells."""

    name = "wandb"
    # Online it is read back before anything is sent again (`readback.py`); offline
    # nobody can.
    can = Capabilities(
        past_steps=True, one_writer=True, tables=True, pdf=False, read_back=False
    )

    def __init__(
        self,
        run: Any = None,  # a wandb.Run; wandb may not be imported yet
        *,
        target: str = "",
        mirror: bool = False,
        companion: bool = False,
        patience: float = 30.0,
    ) -> None:
        """Choose the run; nothing is touched before the first delivery.

        Args:
            run: The user's W&B run; None to ride the one that exists at the first
                delivery, or else to begin one.
            target: `PROJECT` or `ENTITY/PROJECT` for a run of ours;
                `ENTITY/PROJECT/ID` to add to a run that is finished.
            mirror: Whether metrics are shown in a user's run too, under
                `theseus/metrics/`; in a run of ours they always are.
            companion: Whether to begin a run beside the one that was trained, in
                its group, whatever run exists: for what is computed afterwards.
            patience: The longest that a row of ours waits for figures, in seconds.

        Raises:
            BadInput: When wandb is not installed, or `target` is no place in it.
        """
        check_installed()
        self.settings = {"spec": f"wandb:{target}" if target else "wandb"}
        self._run = run
        self._target = parse(target)
        self._companion = companion
        self._patience = patience
        self._info: RunInfo | None = None
        self._seen = Seen()
        self._shown = Told()
        self._place: Place | None = None
        self._farewell: Farewell | None = None
        self._backfill: Backfill | None = None
        self._choosing = threading.Lock()
        # Whether a run of the user's decides where results go.
        self._follows = not companion and not self._target.id
        self._notes: tuple[str, ...] = ()
        self._owned = False
        self._metrics = mirror
        self._disabled = False
        self._ending = False
        self._over = False
        self._ended_well = False
        self._flush_all: Callable[[], object] = lambda: None
        self._close_all: Callable[[], object] = lambda: None
        self._undrawn: Callable[[], int | None] | None = None

    def ride(self, run: Any) -> None:
        """Take the user's W&B run, before the first delivery."""
        self._run = run

    def accompany(
        self,
        *,
        flush: Callable[[], object],
        close: Callable[[], object],
        undrawn: Callable[[], int | None],
    ) -> None:
        """Learn how to reach the run that feeds this sink, before the first delivery.

        Args:
            flush: Delivers all that was logged, within a limit of its own; called
                before the user's W&B run ends.
            close: Closes the run; called at interpreter exit, before wandb's own
                handler.
            undrawn: Gives the lowest step of which a figure is still to come.
        """
        self._flush_all, self._close_all, self._undrawn = flush, close, undrawn
        # The user may finish their run before anything was delivered.
        if self._run is not None:
            self._watch(self._run)

    def notice(self) -> None:
        """Look whether the user has begun a run; cheap, on the thread that logs.

        A run that is begun and finished before the first delivery would be missed.
        """
        decided = self._run is not None or self._place is not None or self._disabled
        if decided or not self._follows or (run := current_run()) is None:
            return
        # While the sink's thread chooses, it decides.
        if self._choosing.acquire(blocking=False):
            try:
                if self._place is None:
                    self._run = run
                    self._watch(run)
            finally:
                self._choosing.release()

    def prepare(self, backfill: Backfill) -> None:
        """Learn that the results come afterwards, from the ledger.

        Args:
            backfill: The run. Its own W&B run is taken up again when nobody can be
                writing to it; else the results are shown in one beside it.
        """
        self._backfill = backfill
        self._follows = False

    def changes(self, info: RunInfo, items: Iterable[Item]) -> Changes:
        """Say what writing items would change; asks W&B, and begins nothing.

        Raises:
            Exception: Whatever wandb raises when it cannot be asked.
        """
        from theseus_track.sinks.wandb.announcing import changes_of

        return changes_of(self._goal(info), items, mirror=self._metrics)

    def notes(self) -> tuple[str, ...]:
        """Say where results are that are not where one would look first."""
        return self._notes

    def open(self, info: RunInfo) -> None:
        """Remember which run this is; W&B is reached at the first delivery."""
        # What it imports cannot be imported any more when the interpreter exits,
        # and a short program may deliver for the first time there.
        importlib.import_module("wandb")
        self._info = info

    def write(self, item: Item) -> Receipt:
        """Add one item to a row, or keep it until a row can take it.

        Raises:
            DeliveryError: When the sink is not open.
            Exception: Whatever wandb raises while it cannot be reached.
        """
        # Not before: a process that only names the sink imports no wandb.
        from theseus_track.sinks.wandb.place import RunIsOver

        if item in self._seen:
            return Receipt("written", "was here already")
        if item.step > _LAST_STEP:
            return Receipt("failed", f"step {item.step} is above {_LAST_STEP}")
        try:
            place = self._placed()
            if place is None:
                return Receipt("skipped", "W&B is disabled")
            if isinstance(item, MetricsItem) and not self._metrics:
                return Receipt("skipped", "the user logs the metrics of this W&B run")
            written = item in self._shown or place.write(item)
        except (BadInput, RunIsOver) as error:
            return Receipt("failed", str(error))
        self._seen.add(item)
        return Receipt("written" if written else "deferred")

    def holds(self, item: Item) -> bool:
        """Tell whether an item that was deferred is not written yet."""
        return self._place is not None and self._place.holds(item)

    def keeps(self, item: Item) -> bool:
        """Tell whether W&B would have an item if this process were killed now."""
        return self._ended_well if self._place is None else self._place.keeps(item)

    def flush(self, timeout: float) -> None:
        """Bring everything into rows that are shown.

        Raises:
            DeliveryError: When results wait for rows that only the user can begin.
        """
        if self._place is not None:
            self._place.flush(timeout)

    def close(self, _timeout: float) -> None:
        """Write what waits; finish the W&B run if it is ours, within half a minute.

        Raises:
            DeliveryError: When the run was finished before everything was written.
        """
        if self._farewell is not None:
            self._farewell.release()
        if self._place is not None:
            place, self._place = self._place, None
            place.close()
            self._ended_well = True

    def _placed(self) -> "Place | None":
        """Return where to write, chosen at the first delivery; None when disabled.

        Raises:
            Exception: Whatever wandb raises when no run can be begun.
        """
        if self._place is not None or self._disabled:
            return self._place
        if self._info is None:
            raise DeliveryError("The W&B sink is not open; call open first.")
        from theseus_track.sinks.wandb.place import RunIsOver

        if self._over:
            raise RunIsOver
        with self._choosing:
            return self._take_place(self._info)

    def _take_place(self, info: RunInfo) -> "Place | None":
        from theseus_track.sinks.wandb.place import Place

        chosen = self._choose(info)
        if chosen.run.disabled:
            self._disabled = True
            if chosen.owned:
                # Else it stays `wandb.run`, which the others of ours are not.
                chosen.run.finish()
            return None
        self._owned, self._notes = chosen.owned, chosen.notes
        self._shown = chosen.shown
        self._metrics = self._metrics or chosen.metrics
        self._watch(chosen.run)
        self._place = Place(
            chosen,
            run_id=info.id,
            patience=self._patience,
            undrawn=self._undrawn,
            backfill=self._backfill,
        )
        if self._ending:
            self._place.end_rows()
        return self._place

    def _choose(self, info: RunInfo) -> Chosen:
        if self._backfill is not None or (self._target.id and not self._companion):
            return choose_afterwards(info, self._goal(info))
        if self._companion:
            return choose_beside(info, self._target)
        return choose(self._run or current_run(), info, self._target)

    def _goal(self, info: RunInfo) -> Goal:
        late = self._backfill
        return goal(
            info,
            self._target,
            running=late is not None and late.state == "running",
            companion=self._companion or (late is not None and late.companion),
        )

    def _watch(self, run: Any) -> None:
        """Be there when a run ends, unless we are already."""
        if self._farewell is None:
            self._farewell = Farewell(
                run, before_finish=self._before_finish, at_exit=self._close_all
            )

    def _before_finish(self) -> None:
        """Deliver what is on its way; on the thread that finishes the W&B run."""
        self._ending = True
        if self._place is not None:
            self._place.end_rows()
        if not self._owned:
            self._flush_all()
        self._over = True
        if self._place is not None:
            self._place.end()
