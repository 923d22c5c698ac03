"""Build: a job, its hyperparameters and the state that it is to start from."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from theseus_track.analysis import AnalysisBase, compose_config
from theseus_track.checkpoints import restore
from theseus_track.errors import BadInput, NotFound
from theseus_track.jobs import Trainer, kind_of
from theseus_track.jobs.place import Place
from theseus_track.jobs.rebuild import rebuild, saved_settings
from theseus_track.quick.analysis_job import AnalysisJob, Goal
from theseus_track.quick.node import Node
from theseus_track.quick.settings import Settings

__all__ = ["Build", "Choice"]


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """A step of a run, and whether a new run begins there."""

    node: Node
    branch: bool = dataclasses.field(kw_only=True)


class Build:
    """What a session builds; a change of the job replaces it whole."""

    def __init__(
        self,
        cls: type,
        *,
        root: Path,
        name: str,
        project: str,
        group: str | None,
        config: Mapping[str, object],
    ) -> None:
        """Check the job and its hyperparameters; allocates nothing.

        Raises:
            BadInput: When the class is no job or a hyperparameter does not fit.
        """
        if kind_of(cls) is None:
            raise BadInput(
                f"{cls!r} is no job: give a Trainer, an analysis or the key of one."
            )
        self._cls = cls
        self._root = root
        self._about: dict[str, Any] = {"name": name, "project": project, "group": group}
        self._config = dict(config)
        self._choice: Choice | None = None
        self._created: Trainer | AnalysisJob | None = None
        self.settings = Settings(_config_of(cls), self._config)

    def choose(self, choice: Choice) -> None:
        """Take a step, and the hyperparameters that its run was trained with.

        Raises:
            BadInput: When its step has no checkpoint, or the saved hyperparameters do
                not fit the job; nothing changes.
            RuntimeError: When the job was created already.
        """
        if self._created is not None:
            raise RuntimeError(
                f"{self._cls.__name__} was created already, from another choice. Call "
                "build(...) with other arguments, or close() first."
            )
        node = choice.node
        if node.checkpoint is None:
            raise BadInput(
                f"Step {node.step} of {node.run.name} (id {node.run.id}) has no "
                "checkpoint. Add .checkpoint() to the search."
            )
        config = _config_of(self._cls)
        saved = saved_settings(node.run.info, config) if self._is_trainer else {}
        self.settings = Settings(config, {**saved, **self._config})
        self._choice = choice

    def create(self) -> Trainer | AnalysisJob:
        """Make the job once; see `Quick.create`."""
        if self._created is None:
            self._created = self._make()
        return self._created

    def __repr__(self) -> str:
        chosen = "" if self._choice is None else f" from {self._choice.node!r}"
        return f"{self._cls.__name__}{chosen}"

    @property
    def _is_trainer(self) -> bool:
        return issubclass(self._cls, Trainer)

    def _make(self) -> Trainer | AnalysisJob:
        made = self._cls(**self.settings.given()) if self._is_trainer else self._cls()
        trainer = made if isinstance(made, Trainer) else self._host(made)
        _restore(trainer, None if self._choice is None else self._choice.node)
        if isinstance(made, AnalysisBase):
            return AnalysisJob(made, trainer, self._goal())
        self._place(trainer)
        return trainer

    def _host(self, analysis: AnalysisBase) -> Trainer:
        """Make the Trainer of the chosen run, for an analysis that has none."""
        if self._choice is None:
            raise BadInput(
                f"{self._cls.__name__} has no Trainer among its bases, so it runs on "
                "the job of a run: choose one by find()...resume()."
            )
        info = self._choice.node.run.info
        return rebuild(info, [analysis], self.settings.given())

    def _goal(self) -> Goal:
        choice = self._choice
        return Goal(
            root=self._root,
            tags=_tags(choice),
            node=choice.node if choice else None,
            attach=choice is not None and not choice.branch,
            **self._about,
        )

    def _place(self, trainer: Trainer) -> None:
        choice = self._choice
        run = choice.node.run if choice and not choice.branch else None
        info = run.info if run else None
        trainer.go_on(
            trainer.state,
            Place(
                root=self._root,
                project=info.project if info else self._about["project"],
                name=info.name if info else self._about["name"],
                id=info.id if info else None,
                group=info.group if info else self._about["group"],
                tags=info.tags if info else _tags(choice),
                sinks=(),
                tensorboard=None,
                resume=run is not None,
                strict=False,
                at=choice.node.step if choice else 0,
            ),
        )


def _config_of(cls: type) -> type:
    if issubclass(cls, Trainer):
        return cls.config_class()
    return compose_config(cls)


def _restore(trainer: Trainer, node: Node | None) -> None:
    trainer.setup()
    if node is None:
        return
    if node.checkpoint is None:
        raise NotFound(f"Step {node.step} of {node.run.name} has no checkpoint.")
    trainer.state = restore(node.checkpoint, trainer.state).tree


def _tags(choice: Choice | None) -> tuple[str, ...]:
    if choice is None:
        return ()
    return (f"from:{choice.node.run.id}@{choice.node.step}",)
