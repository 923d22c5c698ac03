"""What a training tells while it runs: a bar on a terminal, else lines."""

import datetime
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from theseus_track.run.rank import is_rank_zero

__all__ = ["Progress"]


class Progress:
    """Shows step, loss and remaining time on standard error.

    On a terminal a bar is redrawn in place and each evaluation leaves a line above
    it; elsewhere only those lines are written.
    """

    def __init__(
        self, start: int, steps: int, *, console: Console | None = None
    ) -> None:
        """Prepare; entering the context shows the bar.

        Args:
            start: Steps made before.
            steps: The last step.
            console: Where to write; when None, standard error, of rank 0 alone.
        """
        self._console = console or Console(stderr=True, quiet=not is_rank_zero())
        self._steps = steps
        self._mark = (start, time.monotonic())
        self._bar = Bar(
            TextColumn("step {task.completed}/{task.total}"),
            BarColumn(),
            TextColumn("loss {task.fields[loss]}"),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("", total=steps, completed=start, loss="-")

    def __enter__(self) -> Self:
        self._mark = (self._mark[0], time.monotonic())
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def tell(self, text: str) -> None:
        """Write a text as it is, above the bar."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def advance(self, step: int, loss: float | None) -> None:
        """Show that a step was made; `loss` is the last one known."""
        shown = "-" if loss is None else f"{loss:.3f}"
        self._bar.update(self._task, completed=step, loss=shown)

    def evaluated(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write one line about an evaluation."""
        shown = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        self.tell(f"step {step}/{self._steps}  {shown}  ETA {self._remaining(step)}")

    def _remaining(self, step: int) -> datetime.timedelta:
        """Estimate from the steps since the last estimate: the first ones compile."""
        (since, then), now = self._mark, time.monotonic()
        self._mark = (step, now)
        per_step = (now - then) / max(1, step - since)
        return datetime.timedelta(seconds=round(per_step * (self._steps - step)))
