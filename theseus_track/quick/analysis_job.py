"""AnalysisJob: one analysis on one state; its result goes to that state's step."""

import dataclasses
from pathlib import Path
from typing import Any

import jax

from theseus_track.analysis import AnalysisBase, instrument
from theseus_track.jobs import Trainer, spec_of
from theseus_track.jobs.evaluation import PROBE
from theseus_track.jobs.spec import source_of
from theseus_track.quick.node import Node
from theseus_track.records import Source
from theseus_track.run import RunHandle, open_run, reopen_run
from theseus_track.run.probe import same_batch
from theseus_track.store import Result, Store

__all__ = ["AnalysisJob", "Goal"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Where results go.

    Attributes:
        root: The ledger's root.
        project: Of a new run.
        name: Of a new run.
        group: Of a new run.
        tags: Of a new run.
        node: The checkpoint that the state is of, or None for initial parameters.
        attach: Whether results go to the run of `node`, at its step.
    """

    root: Path
    project: str
    name: str
    group: str | None
    tags: tuple[str, ...]
    node: Node | None
    attach: bool


class AnalysisJob:
    """An analysis that is ready to run; calling it runs it and keeps the result.

    Attributes:
        analysis: The analysis.
        trainer: Whose model, state and batches it looks at; the analysis itself where
            it has a Trainer among its bases.
    """

    def __init__(self, analysis: AnalysisBase, trainer: Trainer, goal: Goal) -> None:
        """Tie them together; nothing is computed."""
        self.analysis = analysis
        self.trainer = trainer
        self._goal = goal
        self._ticks = 0

    @property
    def step(self) -> int:
        """The training step of the state, >= 0."""
        return self._goal.node.step if self._goal.node else 0

    def batch(self) -> Any:
        """Return the batch that is looked at, always the same until `tick`.

        At first it is the one that the run stored when it was trained, so that results
        can be compared with those of the training; else the first validation batch.
        """
        if self._ticks or self._goal.node is None:
            return self.trainer.batch()
        return same_batch(self._goal.node.run, PROBE, self.trainer.batch)

    def tick(self) -> None:
        """Go to the next validation batch."""
        self._ticks += 1
        self.trainer.tick()

    def __call__(self, *, strict: bool = True) -> Result:
        """Run the analysis and keep its value and its figure.

        Args:
            strict: Raise what goes wrong in the analysis; else the result says it.

        Returns:
            The result, as the ledger holds it. `theseus-track sync RUN` shows it in
            the run's trackers.

        Raises:
            AnalysisFault: Under `strict`, when select, analyze or plot fails.
            LedgerError: When the root cannot be written.
        """
        step = instrument(self.trainer.eval_step, [self.analysis], strict=strict)
        batch = self.batch()
        # Before the run is opened, so that a fault leaves nothing behind.
        _, values = step(self.trainer.state.variables, batch)
        jax.block_until_ready(values)
        with self._open(strict=strict) as run:
            name = PROBE if not self._ticks else f"{PROBE}-{self._ticks}"
            run.probe(name, batch)
            run.log(
                values,
                step=self.step,
                wall_time=self._wall_time(),
                probe=name,
                source=self._source(),
                wait=True,
            )
        return Store(self._goal.root).run(run.id)[self.analysis.NAME][self.step]

    def __repr__(self) -> str:
        return f"AnalysisJob({type(self.analysis).__name__}, step={self.step})"

    def _open(self, *, strict: bool) -> RunHandle:
        goal = self._goal
        if goal.attach and goal.node is not None:
            return reopen_run(goal.root, goal.node.run.id, strict=strict)
        cls = type(self.analysis)
        return open_run(
            goal.root,
            project=goal.project,
            name=goal.name,
            group=goal.group,
            tags=goal.tags,
            config=self.trainer.args,
            job=spec_of(cls),
            job_source=source_of(cls),
            strict=strict,
        )

    def _source(self) -> Source:
        node = self._goal.node
        if node is None or node.checkpoint is None:
            return Source()
        return Source(
            kind="replay",
            checkpoint=str(node.checkpoint.path),
            checkpoint_time=node.checkpoint.wall_time,
        )

    def _wall_time(self) -> float | None:
        return self._goal.node.wall_time if self._goal.node else None
