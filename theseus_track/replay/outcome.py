"""Outcome: what a replay did, and the exit code that says so."""

import dataclasses
from collections.abc import Mapping

__all__ = ["Outcome", "joined"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a replay did; print it.

    Attributes:
        run: The id of the run that holds the results.
        done: Steps that were computed, ascending.
        skipped: How many steps needed nothing.
        failed: The name of a checkpoint's directory -> why it was not computed.
        undrawn: NAME -> (steps, why they could not be drawn); their values are kept.
        faults: NAME of an analysis -> why it was left out at every step.
        pending: What was computed and may not be in the ledger, one line each.
    """

    run: str
    done: tuple[int, ...]
    skipped: int
    failed: Mapping[str, str]
    faults: Mapping[str, str]
    undrawn: Mapping[str, tuple[tuple[int, ...], str]] = dataclasses.field(
        default_factory=dict
    )
    pending: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing failed."""
        return not (self.failed or self.faults or self.undrawn or self.pending)

    @property
    def exit_code(self) -> int:
        """0 when everything was done, 3 when some failed."""
        return 0 if self.complete else 3

    def __str__(self) -> str:
        lines = [f"{_steps(len(self.done))} computed, {self.skipped} needed nothing."]
        lines += [f"{name} was left out: {why}" for name, why in self.faults.items()]
        lines += [f"{what} failed: {why}" for what, why in self.failed.items()]
        for name, (steps, why) in self.undrawn.items():
            lines.append(f"{name} was not drawn at {_listed(steps)}: {why}")
        return "\n".join([*lines, *self.pending])


def joined(one: Outcome, two: Outcome) -> Outcome:
    """Return what two replays of the same run did together."""
    undrawn = {**one.undrawn}
    for name, (steps, why) in two.undrawn.items():
        before, first = undrawn.get(name, ((), why))
        undrawn[name] = ((*before, *steps), first)
    return Outcome(
        run=two.run,
        done=tuple(sorted({*one.done, *two.done})),
        skipped=one.skipped + two.skipped,
        failed={**one.failed, **two.failed},
        faults={**one.faults, **two.faults},
        undrawn=undrawn,
        pending=(*one.pending, *two.pending),
    )


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _listed(steps: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, steps[:5]))
    noun = "step" if len(steps) == 1 else "steps"
    return f"{noun} {shown}" + (f" and {len(steps) - 5} more" if len(steps) > 5 else "")
