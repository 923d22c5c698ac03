"""One W&B run as we write it: keys defined, steps told, summaries of the last step."""

from collections.abc import Iterable, Mapping
from typing import Any

from theseus_track.sinks.wandb.entry import Entry, Row
from theseus_track.sinks.wandb.keys import RECORDS, StepKeys, fit

__all__ = ["Log"]

_NAMES = "theseus/names"


class Log:
    """Adds to a `wandb.Run`, and changes nothing in it that others wrote."""

    def __init__(self, run: Any) -> None:  # a wandb.Run
        """Take a run that is not finished."""
        self._run = run
        self._defined: set[str] = set()
        self._names: dict[str, str] = {}
        self._latest: dict[str, tuple[int, float]] = {}
        self._overtaken: set[str] = set()

    @property
    def counter(self) -> int:
        """W&B's step of the row that is being filled; asks its process."""
        return int(self._run.step)

    def put(self, entry: Entry, row: Row | None, *, at: int | None = None) -> None:
        """Add an entry to the row that is being filled, without ending that row.

        Args:
            entry: What to add.
            row: What of ours is in that row already, if anything.
            at: W&B's step of the row, in a run of ours; ends the rows below it.
                None to take the row that is there.
        """
        values = {self._key(key): value for key, value in entry.values.items()}
        self._define(values, entry.steps)
        full = {
            **values,
            entry.steps.step: entry.step,
            entry.steps.time: entry.item.wall_time,
            RECORDS: entry.record if row is None else row.records_with(entry),
        }
        if at is None:
            # A step, or a commit, would drop what the user logs next
            # (tests/sinks/test_wandb_riding.py).
            self._run.log(full, commit=False)
        else:
            self._run.log(full, step=at, commit=False)
        self._note(entry.step, values)

    def commit(self) -> None:
        """End the row that is being filled."""
        self._run.log({}, commit=True)

    def recall(self, step: int, values: Mapping[str, float]) -> None:
        """Learn what the run shows at another step since before it was taken up.

        Args:
            step: The training step.
            values: Key -> number; only those of keys that were written here matter.
        """
        for full, value in values.items():
            key = fit(full)
            if key in self._latest and step > self._latest[key][0]:
                self._latest[key] = (step, value)
                self._overtaken.add(key)

    def settle(self) -> None:
        """Let the summary show the highest step where W&B shows the last write."""
        for key in self._overtaken:
            self._run.summary[key] = self._latest[key][1]
        self._overtaken.clear()

    def _key(self, full: str) -> str:
        """Return the key for W&B; what a cut one stands for is in the run's config."""
        key = fit(full)
        if key != full and key not in self._names:
            names = self._names = {**self._names, key: full}
            self._run.config.update({_NAMES: names}, allow_val_change=True)
        return key

    def _define(self, keys: Iterable[str], steps: StepKeys) -> None:
        """Define each key by name: where two globs match, W&B takes any of them."""
        for key in (steps.step, steps.time, RECORDS):
            if key not in self._defined:
                self._run.define_metric(key, hidden=True)
                self._defined.add(key)
        for key in keys:
            if key not in self._defined:
                self._run.define_metric(key, step_metric=steps.step)
                self._defined.add(key)

    def _note(self, step: int, values: Mapping[str, Any]) -> None:
        for key, value in values.items():
            if not isinstance(value, float):
                continue
            if step >= self._latest.get(key, (-1, 0.0))[0]:
                self._latest[key] = (step, value)
                self._overtaken.discard(key)
            else:
                self._overtaken.add(key)
