"""Redrawn: what a replot did, and the exit code that says so."""

import dataclasses
from collections.abc import Mapping, Sequence

__all__ = ["Redrawn"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Redrawn:
    """What a replot did; print it.

    Attributes:
        run: The id of the run.
        done: NAME -> steps that were drawn again.
        skipped: How many results needed nothing.
        failed: (NAME, step) -> why it could not be drawn; it is shown as before.
        outdated: NAME -> steps whose values other measuring code computed; they need
            a replay.
        empty: NAME -> steps at which `plot` returned nothing; shown as before.
    """

    run: str
    done: Mapping[str, Sequence[int]]
    skipped: int
    failed: Mapping[tuple[str, int], str]
    outdated: Mapping[str, Sequence[int]]
    empty: Mapping[str, Sequence[int]]

    @property
    def complete(self) -> bool:
        """Whether everything is drawn by the code of today."""
        return not (self.failed or self.outdated)

    @property
    def exit_code(self) -> int:
        """0 when everything was done, 3 when some was not."""
        return 0 if self.complete else 3

    def __str__(self) -> str:
        count = sum(len(steps) for steps in self.done.values())
        lines = [f"{count} drawn, {self.skipped} needed nothing."]
        lines += [
            f"{name} at step {step} failed: {why}"
            for (name, step), why in self.failed.items()
        ]
        lines += [
            f"{name} at {_listed(steps)}: the code that computes the values has "
            "changed, so that drawing is not enough. theseus-track replay computes "
            "them again."
            for name, steps in self.outdated.items()
        ]
        lines += [
            f"{name} at {_listed(steps)}: plot returned nothing."
            for name, steps in self.empty.items()
        ]
        return "\n".join(lines)


def _listed(steps: Sequence[int]) -> str:
    shown = ", ".join(map(str, steps[:5]))
    noun = "step" if len(steps) == 1 else "steps"
    return f"{noun} {shown}" + (f" and {len(steps) - 5} more" if len(steps) > 5 else "")
