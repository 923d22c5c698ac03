"""Quick: a session on one root: search, build a job, choose a state, run."""

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from theseus_track.checkpoints import Checkpoint, find_checkpoints
from theseus_track.errors import BadInput, NotFound
from theseus_track.jobs import Trainer, load_job
from theseus_track.jobs.place import saved_in
from theseus_track.quick.analysis_job import AnalysisJob
from theseus_track.quick.build import Build, Choice
from theseus_track.quick.node import Node, nodes_of
from theseus_track.quick.query import Query
from theseus_track.quick.settings import Settings
from theseus_track.store import Run, Store, resolve_root

__all__ = ["Quick", "init", "quick"]


class Quick:
    """A session on one root; made by `quick` or `init`.

    Searching writes nothing. `build` says what to run, `find()...resume()` or
    `.branch()` on what, `create` prepares it, and a call runs it.

    Attributes:
        root: The absolute root.
    """

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        """Take a root: this, else `$THESEUS_ROOT`, else `./results`."""
        self.root: Path = resolve_root(root)
        self._store = Store(self.root)
        self._build: Build | None = None
        self._asked: object = None

    def build(
        self,
        job: type | str,
        name: str | None = None,
        project: str = "default",
        group: str | None = None,
        config: Mapping[str, object] | None = None,
    ) -> Self:
        """Say what to run; the same arguments again keep the session as it is.

        Args:
            job: A Trainer or an analysis, or the text that names one: a registered
                key, `module:Class` or `file.py:Class`. An analysis without a Trainer
                among its bases looks at the job of the run that is chosen.
            name: What a new run is called; default: the class name.
            project: The project of a new run.
            group: The group of a new run.
            config: Hyperparameters that differ from the defaults, or from those of
                the run that is chosen.

        Returns:
            The session.

        Raises:
            NotFound: When there is no such job.
            BadInput: When the class is no job or a hyperparameter does not fit. The
                session stays as it was.
        """
        asked = (job, name, project, group, copy.deepcopy(dict(config or {})))
        if self._build is not None and asked == self._asked:
            return self
        cls = load_job(job) if isinstance(job, str) else job
        made = Build(
            cls,
            root=self.root,
            name=name or cls.__name__,
            project=project,
            group=group,
            config=asked[-1],
        )
        self._build, self._asked = made, asked
        return self

    @property
    def config(self) -> Settings:
        """The job's hyperparameters: `q.config.steps = 200`; BadInput before `build`.

        After `resume` or `branch`, those of the chosen run.
        """
        return self._built("config").settings

    def find(self) -> Query:
        """Begin a search among the steps of all runs."""
        return Query(self)

    def nodes(self) -> list[Node]:
        """Return every step of every run, by step, then by when the run began.

        Raises:
            NotFound: When the root does not exist.
        """
        runs = self._store.runs()
        nodes = [node for run in runs for node in nodes_of(run, _saved(run))]
        return sorted(nodes, key=lambda node: node.step)

    def take(self, node: Node, *, branch: bool) -> Node:
        """Choose a step; `Query.resume` and `Query.branch` call it.

        Args:
            node: The step.
            branch: Begin a new run from there, instead of going on in that one.

        Returns:
            The step.
        """
        self._built("resume() and branch()").choose(Choice(node, branch=branch))
        return node

    def create(self) -> Trainer | AnalysisJob:
        """Prepare the job, once; nothing runs and nothing is written.

        Returns:
            A Trainer that holds the chosen state, or an AnalysisJob; call it to run.

        Raises:
            BadInput: When nothing was built, or a job is needed to run an analysis.
            NotFound: When a training is chosen at a step without a checkpoint.
            CheckpointError: When the checkpoint cannot be read.
        """
        return self._built("create()").create()

    def __call__(self) -> Any:
        """Prepare the job and run it; returns what the job returns."""
        return self.create()()

    def close(self) -> None:
        """Forget what was built and chosen; doing it twice is harmless."""
        self._build, self._asked = None, None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Quick({str(self.root)!r}, {self._build!r})"

    def _built(self, wanted: str) -> Build:
        if self._build is None:
            raise BadInput(
                f"{wanted} needs a job. Call build(JOB, name) first, with a Trainer, "
                "an analysis or its key."
            )
        return self._build


def _saved(run: Run) -> Mapping[int, Checkpoint]:
    """Return step -> the whole checkpoint of a run."""
    directory = saved_in(run)
    if directory is None:
        return {}
    try:
        return find_checkpoints(directory).by_step()
    except NotFound:
        return {}


def quick(root: str | os.PathLike[str] | None = None) -> Quick:
    """Open a session on a root, as a context.

    Args:
        root: This, else `$THESEUS_ROOT`, else `./results`.

    Returns:
        The session; leaving the block closes it.

    Example:
        ```python
        from theseus_track.demo import Activations, run_demo
        from theseus_track.quick import quick

        run_demo("results", steps=20, sinks=())
        with quick("results") as q:
            q.build(Activations, "inspect")
            q.find().spec(run="train-gpt").checkpoint().latest().resume()
            analysis_job = q.create()
            result = analysis_job()
        ```
    """
    return Quick(root)


def init(root: str | os.PathLike[str] | None = None) -> Quick:
    """Open a session on a root for a notebook; `close()` it at the end.

    Args:
        root: This, else `$THESEUS_ROOT`, else `./results`.

    Returns:
        The session.
    """
    return Quick(root)
