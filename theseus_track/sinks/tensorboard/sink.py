"""The sink that shows a run in TensorBoard."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from theseus_track.errors import DeliveryError
from theseus_track.records import Item, MetricsItem, RunInfo
from theseus_track.records.strict_json import Json
from theseus_track.sinks.contract import Backfill, Capabilities, Changes, Receipt
from theseus_track.sinks.tensorboard.claim import Claim, check_run

if TYPE_CHECKING:
    from theseus_track.sinks.tensorboard.board import Board

__all__ = ["TensorBoardSink"]


class TensorBoardSink:
    """Writes event files as the package's docstring tells.

    A step that is not above the last of its tag goes to a directory beside the
    first, and the receipt names it.
    """

    name = "tensorboard"
    can = Capabilities(
        past_steps=True, one_writer=True, tables=True, pdf=False, read_back=False
    )

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        *,
        run: str | None = None,
        metrics: bool = True,
    ) -> None:
        """Choose the place; nothing is touched before `open`.

        Args:
            logdir: The log directory.
            run: The run's directory below it; "" when the log directory is the
                run's own, as a user's `SummaryWriter` has it; None to take the
                run's name.
            metrics: Whether metrics are written. False where the user writes them.

        Raises:
            BadInput: When `run` leads out of the log directory.
        """
        self._logdir = Path(logdir)
        self._run = check_run(run)
        self._metrics = metrics
        self._backfill: Backfill | None = None
        self._at_once = False
        self._claim: Claim | None = None
        self._board: Board | None = None
        self._notes: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, Json]:
        """What `run.json` keeps, so that the ledger alone can fill the same place."""
        logdir = str(self._logdir.absolute())
        return {"logdir": logdir, "run": self._run, "metrics": self._metrics}

    @property
    def directory(self) -> Path | None:
        """The run's directory, once open."""
        return self._claim.directory if self._claim else None

    def prepare(self, backfill: Backfill) -> None:
        """Learn what the ledger has; a late step may then be put into its place.

        Args:
            backfill: The run. Unless it is still written somewhere, a late step has
                the event file made anew, sorted, by replacing it.
        """
        self._backfill = backfill

    def go_on(self, backfill: Backfill) -> None:
        """Learn what the ledger has of a run that a training goes on with.

        Args:
            backfill: The run, in the state in which it was found. When the first step
                comes that an earlier attempt has shown already, the event file is made
                anew without what is replaced.
        """
        self._backfill = backfill
        self._at_once = True

    def changes(self, info: RunInfo, items: Iterable[Item]) -> Changes:
        """Say what writing items would change; touches nothing, and needs no `open`."""
        from theseus_track.sinks.tensorboard.announcing import changes_of

        return changes_of(
            Claim.find(self._logdir, self._run, info),
            (i for i in items if self._metrics or not isinstance(i, MetricsItem)),
            run_id=info.id,
            running=self._backfill is not None and self._backfill.state == "running",
        )

    def notes(self) -> tuple[str, ...]:
        """Say where things are that are not where one would look first."""
        return self._notes

    def open(self, info: RunInfo) -> None:
        """Claim the run's directory.

        Raises:
            DeliveryError: When it belongs to other runs.
            OSError: When the log directory cannot be written.
        """
        # Not before: a process that only names the sink imports no tensorboardX.
        from theseus_track.sinks.tensorboard.board import Board

        self._claim = Claim.take(self._logdir, self._run, info)
        self._board = Board(self._claim, info.id, self._backfill, at_once=self._at_once)

    def write(self, item: Item) -> Receipt:
        """Append one item to an event file.

        Raises:
            OSError: When the disk does not take it; nothing of it is left there.
        """
        if self._board is None:
            raise DeliveryError("The TensorBoard sink is not open; call open first.")
        if isinstance(item, MetricsItem) and not self._metrics:
            return Receipt("skipped", "the user writes the metrics of this directory")
        return self._board.show(item)

    def flush(self, _timeout: float) -> None:
        """Make what was written survive a loss of power; put late steps into place.

        Raises:
            OSError: When the disk does not take it; what was shown is shown still.
        """
        if self._board is not None:
            self._board.settle()

    def close(self, _timeout: float) -> None:
        """Close the event files and give up the claim."""
        if self._board is None or self._claim is None:
            return
        try:
            self._board.settle()
        finally:
            self._board.close()
            self._notes = self._board.notes()
            self._board = None
            self._claim.release()
