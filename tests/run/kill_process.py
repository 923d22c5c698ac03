"""Trainings without a model, each in a process of its own that is killed.

Called with a directory, how they are killed (`after` so many seconds, `at` a file
operation of that number, at a `row` of W&B of that number), and the moments. Prints
for each one, as JSON, the last step that was acknowledged, or -1.
"""

import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorboardX.summary  # noqa: F401 (imported once, before the processes fork)
import wandb

from theseus_track import open_run


def train(directory: Path, tell: int, sinks: list[str], steps: int) -> None:
    """Log until killed; tell each step after the flush that acknowledged it."""
    os.environ["WANDB_DIR"] = str(directory)
    with open_run(directory / "results", id="killed", sinks=sinks) as run:
        for step in range(steps):
            run.log_metrics({"loss": 1.0 / (step + 1)}, step=step)
            run.log_result("table", {"step": step}, step=step)
            if step % 3 == 2 and run.flush(60.0):
                os.write(tell, b"%d\n" % step)


def killed_after(directory: Path, seconds: float) -> int:
    """Kill a training with three sinks from outside."""

    def act(tell: int) -> None:
        sinks = ["memory", f"tensorboard:{directory / 'board'}", "wandb"]
        train(directory, tell, sinks, 10_000)

    def kill(child: int) -> None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)

    return _fork(act, kill)


def killed_at(directory: Path, operation: int) -> int:
    """Kill a short training right before a file operation of its own."""

    def act(tell: int) -> None:
        die_at_operation(operation)
        train(directory, tell, ["memory", f"tensorboard:{directory / 'board'}"], 3)

    return _fork(act, lambda _child: None)


def killed_at_row(directory: Path, number: int) -> int:
    """Kill a short training right before it writes to W&B, or finishes there."""

    def act(tell: int) -> None:
        dies = _dying(number)
        for name in ("log", "finish"):
            setattr(wandb.Run, name, dies(getattr(wandb.Run, name)))
        train(directory, tell, ["memory", "wandb"], 3)

    return _fork(act, lambda _child: None)


def _dying(number: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what lets the process die at the call of that number."""
    numbers = itertools.count(1)

    def dies(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if next(numbers) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return counted

    return dies


def die_at_operation(operation: int) -> None:
    """Let the process die when it begins that operation."""
    dies = _dying(operation)
    for name in ("open", "write", "fsync", "replace", "mkdir"):
        setattr(os, name, dies(getattr(os, name)))
    opened = Path.open

    def open_counted(self: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        file = opened(self, mode, *args, **kwargs)
        return file if "r" in mode else _Counted(file, dies(file.write))

    Path.open = open_counted  # type: ignore[method-assign]


class _Counted:
    """A file whose writes are counted."""

    def __init__(self, file: Any, write: Callable[..., Any]) -> None:
        self._file, self.write = file, write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> "_Counted":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.__exit__(*error)


def _fork(act: Callable[[int], None], kill: Callable[[int], object]) -> int:
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        act(tell)
        os._exit(0)
    os.close(tell)
    kill(child)
    with os.fdopen(told) as lines:
        steps = [int(line) for line in lines if line.endswith("\n")]
    os.waitpid(child, 0)
    return max(steps, default=-1)


if __name__ == "__main__":
    place, how, *moments = sys.argv[1:]
    for number, moment in enumerate(moments):
        there = Path(place) / f"{number}"
        there.mkdir(parents=True)
        match how:
            case "after":
                last = killed_after(there, float(moment))
            case "at":
                last = killed_at(there, int(moment))
            case _:
                last = killed_at_row(there, int(moment))
        print(json.dumps(last), flush=True)  # noqa: T201
