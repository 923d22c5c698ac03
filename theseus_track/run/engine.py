"""Everything that works behind a RunHandle, started and stopped in the right order."""

import time
from collections.abc import Sequence
from pathlib import Path

from theseus_track.errors import LedgerError
from theseus_track.records import Resumed, RunInfo
from theseus_track.render import Renderer
from theseus_track.run.courier import Courier
from theseus_track.run.drawing import Drawer
from theseus_track.run.readback import Readback
from theseus_track.run.recorder import Recorder
from theseus_track.run.report import CloseReport
from theseus_track.run.troubles import Troubles
from theseus_track.sinks import Sink
from theseus_track.store import LedgerWriter

__all__ = ["Engine"]

# The longest that a tracker may hold a caller who asked to wait, in seconds.
_HANDED_OVER = 10.0


class Engine:
    """The ledger writer, the drawing thread and the deliveries of one run.

    Attributes:
        writer: The ledger.
        recorder: Takes values, metrics and probes.
        drawer: Takes finished figures and tables.
        strict: Whether background faults are raised at the next call.
    """

    def __init__(
        self,
        root: Path,
        info: RunInfo,
        sinks: Sequence[Sink],
        *,
        resumed_at: int | None,
        continued: bool,
        strict: bool,
        purpose: str = "live",
    ) -> None:
        """Create the ledger's files, then start the threads.

        Args:
            root: The ledger's root.
            info: The run.
            sinks: The trackers, not open.
            resumed_at: The first step that this attempt may write, if known.
            continued: Whether the run existed before.
            strict: Raise background faults at the next call.
            purpose: What this writer is for; only a live one is an attempt, which
                may supersede earlier ones.

        Raises:
            LedgerError: When the root cannot be written; nothing was started.
        """
        self.writer = LedgerWriter.create(
            root, info, purpose=purpose, resumed_at=resumed_at
        )
        self.strict = strict
        self._place_unknown = continued and resumed_at is None and purpose == "live"
        self._troubles = Troubles(strict=strict)
        # On the training thread, before anything is logged.
        self._notice = [sink.notice for sink in sinks if hasattr(sink, "notice")]
        readback = Readback(self.writer.run_dir)
        self._courier = Courier(
            sinks,
            info,
            writer=self.writer,
            read_items=readback.items,
            troubles=self._troubles,
        )
        self.drawer = Drawer(
            writer=self.writer,
            renderer=Renderer(),
            courier=self._courier,
            troubles=self._troubles,
            reread=readback.value,
        )
        self.recorder = Recorder(
            writer=self.writer,
            drawer=self.drawer,
            courier=self._courier,
            troubles=self._troubles,
        )

    def notice(self) -> None:
        """Let the sinks look at what the user has begun meanwhile; cheap."""
        for notice in self._notice:
            notice()

    def begin(self, step: int) -> None:
        """Note where a continued run goes on, when its first step is logged."""
        if not self._place_unknown:
            return
        self._place_unknown = False
        try:
            self.writer.append(Resumed(step=step))
        except LedgerError as error:
            self._troubles.report("ledger", error)

    def check(self) -> None:
        """Raise the oldest background fault under `strict`; else do nothing."""
        self._troubles.raise_pending()

    def hand_over(self) -> None:
        """Wait until the sinks were given what is drawn, for ten seconds at most."""
        self._courier.hand_over(time.monotonic() + _HANDED_OVER)

    def flush(self, timeout: float) -> bool:
        """Record, draw and deliver everything within `timeout` seconds, or say no."""
        deadline = time.monotonic() + timeout
        # In the order of the flow: what is recorded is drawn, what is drawn is sent.
        recorded = self.recorder.join(deadline)
        drawn = self.drawer.join(deadline)
        return self._courier.flush(deadline) and recorded and drawn

    def close(self, timeout: float, *, complete: bool = True) -> CloseReport:
        """Flush and stop everything within about `timeout` seconds.

        Args:
            timeout: In seconds.
            complete: Whether the program did what it was to do.
        """
        deadline = time.monotonic() + timeout
        recorded = self.recorder.join(deadline)
        drawn = self.drawer.join(deadline)
        self.recorder.close(deadline)
        self.drawer.close(deadline)
        sinks = self._courier.close(deadline)
        try:
            self.writer.close(complete=complete)
        except LedgerError as error:
            self._troubles.report("ledger", error)
        return CloseReport(
            run=self.writer.info.id,
            recorded=recorded,
            lost=self.recorder.lost,
            drawn=drawn,
            sinks=tuple(sinks),
            faults=tuple(self._troubles.lines()),
        )
