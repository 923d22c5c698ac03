"""What a long command shows while it works: a bar on a terminal, else a line a step."""

import time
from datetime import timedelta
from types import TracebackType
from typing import Self

__all__ = ["Bar"]


class Bar:
    """Counts what is done on standard error, with the time that is left."""

    def __init__(self, noun: str) -> None:
        """Prepare; nothing is shown before the first call.

        Args:
            noun: What is counted, in the singular, such as "checkpoint".
        """
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._noun = noun
        self._console = Console(stderr=True, highlight=False)
        self._bar = Progress(
            TextColumn(f"{noun} {{task.completed}}/{{task.total}}"),
            BarColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None)
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        """Show that `done` of `total` are done."""
        self._bar.update(self._task, completed=done, total=total)
        if self._console.is_terminal:
            return
        each = (time.monotonic() - self._began) / max(1, done)
        left = timedelta(seconds=round(each * (total - done)))
        self._console.print(f"{self._noun} {done}/{total}  ETA {left}", soft_wrap=True)
