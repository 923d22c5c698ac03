"""Which steps a replay is asked for: all, one, a range, the latest."""

import dataclasses
import os
from collections.abc import Iterable

from theseus_track.errors import BadInput

__all__ = ["Steps", "parse_steps", "slurm_part"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """A choice of training steps; without any field, all of them.

    Attributes:
        first: The lowest step, inclusive, >= 0.
        stop: The step to stop before, or None.
        every: Take steps that are `first` plus a multiple of this, >= 1.
        latest: Take only the highest of what is left.
    """

    first: int = 0
    stop: int | None = None
    every: int = 1
    latest: bool = False

    def __post_init__(self) -> None:
        if self.first < 0 or self.every < 1 or (self.stop or 0) < 0:
            raise BadInput(
                f"The steps {self.first}:{self.stop}:{self.every} make no sense: steps "
                "are >= 0 and the interval is >= 1."
            )

    def choose(self, steps: Iterable[int]) -> list[int]:
        """Return those that are asked for, ascending."""
        chosen = sorted(
            step
            for step in set(steps)
            if step >= self.first
            and (self.stop is None or step < self.stop)
            and (step - self.first) % self.every == 0
        )
        return chosen[-1:] if self.latest else chosen


def parse_steps(text: str) -> Steps:
    """Read `A:B:C`, as Python slices are read: from A, before B, every C steps.

    Args:
        text: Such as "1000:5000:500", "1000:", ":5000", "::500" or "1000".

    Returns:
        The choice.

    Raises:
        BadInput: When a part is no integer, or there are more than three.
    """
    parts = text.split(":")
    try:
        numbers = [int(part) if part.strip() else None for part in parts]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3 or (len(parts) == 1 and numbers[0] is None):
        raise BadInput(
            f"The steps {text!r} cannot be read. Write FIRST:STOP:EVERY with integers, "
            "such as 1000:5000:500, where each may be left out; or one step."
        )
    if len(numbers) == 1:
        (step,) = numbers
        assert step is not None
        return Steps(first=step, stop=step + 1)
    first, stop, every = (*numbers, None)[:3]
    return Steps(first=first or 0, stop=stop, every=1 if every is None else every)


def slurm_part() -> tuple[int, int] | None:
    """Return (index, count) of a task of a SLURM array, or None outside of one."""
    try:
        index = int(os.environ["SLURM_ARRAY_TASK_ID"])
        count = int(os.environ["SLURM_ARRAY_TASK_COUNT"])
        first = int(os.environ.get("SLURM_ARRAY_TASK_MIN", "0"))
    except (KeyError, ValueError):
        return None
    return (index - first, count) if 0 <= index - first < count else None
