"""The demo from start to end: train, look inside, say where everything is."""

import dataclasses
import os
import secrets
import shlex
from collections.abc import Sequence

from theseus_track.demo.analyses import GPTWithAnalysis
from theseus_track.demo.text import load_text
from theseus_track.sinks import viewing_command
from theseus_track.store import Result, Run, Store, resolve_root

__all__ = ["DemoSummary", "run_demo"]

NAME = "train-gpt"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DemoSummary:
    """What a demo came to; print it.

    Attributes:
        run: The run in the ledger.
        loss: The validation loss after the last step, in nats a character.
        unigram_entropy: The loss of guessing by the frequency of characters alone.
        latest: The result of each analysis at the last step.
        evaluations: How many steps have results.
        commands: Shell commands that show what is there.
    """

    run: Run
    loss: float
    unigram_entropy: float
    latest: tuple[Result, ...]
    evaluations: int
    commands: tuple[str, ...]

    def __str__(self) -> str:
        below = self.unigram_entropy - self.loss
        lines = [
            f"Loss {self.loss:.3f} nats a character, {below:.3f} below the unigram "
            f"entropy {self.unigram_entropy:.3f}.",
            "",
            f"Results of the last of {self.evaluations} evaluations:",
        ]
        for result in self.latest:
            shown = result.error or f"step {result.step}"
            lines.append(f"  {result.name} ({shown})")
            lines += [f"    {file}" for file in result.files]
        lines += ["", "Look at them:", *(f"  {command}" for command in self.commands)]
        return "\n".join(lines)


def run_demo(
    root: str | os.PathLike[str] | None = None,
    *,
    steps: int | None = None,
    sinks: Sequence[str] = ("tensorboard",),
) -> DemoSummary:
    """Train the demo's GPT with its analyses.

    Args:
        root: The ledger's root; `$THESEUS_ROOT`, else `./results`, when None.
        steps: Training steps, >= 1; ten evaluations are spread over them. None: 600,
            which takes about two minutes on two CPU cores.
        sinks: Trackers, such as "tensorboard" or "tensorboard:logs".

    Returns:
        What it came to.

    Raises:
        BadInput: When steps or a sink cannot be used; nothing was written.
        LedgerError: When the root cannot be written; nothing was written.

    Example:
        ```python
        from theseus_track.demo import run_demo

        print(run_demo("results", steps=20, sinks=()))
        ```
    """
    settings = {} if steps is None else _spread(steps)
    run_id = secrets.token_hex(4)
    metrics = GPTWithAnalysis(**settings)(
        root, project="demo", name=NAME, id=run_id, sinks=sinks
    )
    run = Store(root).run(run_id)
    latest = tuple(run[name].latest for name in run.analyses)
    return DemoSummary(
        run=run,
        loss=metrics["eval/loss"],
        unigram_entropy=load_text().unigram_entropy,
        latest=latest,
        evaluations=len(run.steps),
        commands=_commands(run_id, root, latest, sinks),
    )


def _spread(steps: int) -> dict[str, int]:
    tenth = max(1, steps // 10)
    return {
        "steps": steps,
        "eval_every": tenth,
        "log_every": min(10, tenth),
        "checkpoint_every": max(1, steps // 3),
    }


def _commands(
    run_id: str,
    root: str | os.PathLike[str] | None,
    latest: Sequence[Result],
    sinks: Sequence[str],
) -> tuple[str, ...]:
    where = "" if root is None else f" --root {shlex.quote(os.fspath(root))}"
    commands = [f"theseus-track results {run_id}{where}"]
    if latest:
        commands.append(f"theseus-track show {run_id} {latest[0].name}{where}")
    for sink in sinks:
        name, _, target = sink.partition(":")
        if name == "tensorboard":
            logdir = target or resolve_root(root) / "tensorboard"
            commands.append(viewing_command(logdir))
    return tuple(commands)
