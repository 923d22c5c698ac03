"""The evaluation of a Trainer: validation metrics, with analyses on the first batch."""

import itertools
from collections.abc import Set
from typing import TYPE_CHECKING

import numpy as np

from theseus_track.analysis import Values, instrument, is_off
from theseus_track.errors import BadInput
from theseus_track.jobs.steps import Batch, Metrics
from theseus_track.run import RunHandle

if TYPE_CHECKING:
    from theseus_track.jobs.trainer import Trainer

__all__ = ["Evaluation"]

PROBE = "val"


class Evaluation:
    """Evaluates the live state of a Trainer.

    At most two programs are compiled: the plain step, and one with all analyses
    that runs on the first batch whenever one of them is due.
    """

    def __init__(self, trainer: "Trainer", *, strict: bool) -> None:
        """Instantiate the analyses and bind them to the Trainer.

        Args:
            trainer: The Trainer; its state is read at each evaluation.
            strict: Raise faults of analyses.
        """
        made = [a() if isinstance(a, type) else a for a in trainer.ANALYSIS]
        self._trainer = trainer
        self._plain = trainer.eval_step
        self._watched = instrument(
            self._plain, [trainer.bind(analysis) for analysis in made], strict=strict
        )
        self._analyses = {} if is_off() else self._watched.analyses
        self._merges = any(callable(getattr(a, "merge", None)) for a in made)
        self._probe: Batch | None = None

    def plan(self) -> str:
        """Describe what the analyses will do; "" when there are none.

        Raises:
            PlanError: Names the faults of all analyses.
        """
        if not self._analyses:
            return ""
        return str(
            self._watched.plan(self._trainer.state.variables, self._trainer.batch())
        )

    def __call__(self, run: RunHandle, *, step: int) -> dict[str, float]:
        """Evaluate, and log the values of the analyses that are due.

        Args:
            run: Where values go.
            step: The training step, >= 1.

        Returns:
            The mean of each metric over the validation batches.
        """
        variables = self._trainer.state.variables
        due = self._due(step)
        values: Values | None = None
        rows: list[Metrics] = []
        for index, batch in enumerate(self._batches(run)):
            if due and (index == 0 or self._merges):
                metrics, found = self._watched(variables, batch)
                values = found if values is None else values.merge(found)
            else:
                metrics = self._plain(variables, batch)
            rows.append(metrics)
        if values is not None:
            run.log(values.only(due), step=step, probe=PROBE)
        return {k: float(np.mean([row[k] for row in rows])) for k in rows[0]}

    def _due(self, step: int) -> Set[str]:
        """Choose by EVERY, counting evaluations; all are due at the last step."""
        args = self._trainer.args
        # Counted from the step, so that a resumed training goes on alike.
        count = (step - 1) // args.eval_every
        return {
            name
            for name, analysis in self._analyses.items()
            if step == args.steps or count % analysis.EVERY == 0
        }

    def _batches(self, run: RunHandle) -> list[Batch]:
        batches = itertools.islice(
            self._trainer.batches("val"), self._trainer.args.eval_batches
        )
        found = list(batches)
        if not found:
            raise BadInput(
                f"{type(self._trainer).__name__}.batches('val') yielded no batch. "
                "Yield at least one."
            )
        if self._probe is None:
            self._probe = run.probe(PROBE, found[0])
        return [self._probe, *found[1:]]
