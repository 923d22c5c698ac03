"""From what a run tells of itself back to the Trainer that made it."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from theseus_track.analysis import AnalysisBase
from theseus_track.errors import BadInput
from theseus_track.jobs.load import load_job
from theseus_track.jobs.settings import check_settings
from theseus_track.jobs.trainer import Trainer
from theseus_track.records import RunInfo

__all__ = ["rebuild", "saved_settings"]


def rebuild(
    info: RunInfo,
    analyses: Sequence[AnalysisBase],
    settings: Mapping[str, object] | None = None,
) -> Trainer:
    """Make the Trainer of a run again, with other analyses; allocates nothing.

    Args:
        info: The run. Its job is imported, as it is now; its hyperparameters are
            those that were saved.
        analyses: Instances; bound to the Trainer. Of each only what it selects,
            computes and draws counts: a Trainer among its bases is not used.
        settings: Hyperparameters of the analyses that were set.

    Returns:
        The Trainer; its `ANALYSIS` are these.

    Raises:
        BadInput: When the run names no job, or its saved hyperparameters do not fit.
        NotFound: When its job does not exist any more.
    """
    # A class of a notebook or a prompt is in no file that could be loaded again.
    if info.job is None or info.job.startswith("__main__:"):
        where = "a loop of its own" if info.job is None else "a notebook or a prompt"
        raise BadInput(
            f"The run {info.name!r} (id {info.id}) names no job that makes its model: "
            f"it was logged by {where}."
        )
    cls = load_job(info.job)
    if not issubclass(cls, Trainer) or issubclass(cls, AnalysisBase):
        raise BadInput(
            f"The run {info.name!r} (id {info.id}) was made by {info.job!r}, which is "
            "no training. Choose the run of a training."
        )
    # A subclass, so that the CONFIGs of these analyses are part of its `args`.
    host: type[Trainer] = type(cls.__name__, (cls,), {"ANALYSIS": tuple(analyses)})
    saved = saved_settings(info, host.config_class())
    trainer = host(**{**saved, **(settings or {})})
    for analysis in analyses:
        trainer.bind(analysis)
    return trainer


def saved_settings(info: RunInfo, config: type) -> dict[str, Any]:
    """Return those hyperparameters of a run that a config class has, too.

    Raises:
        BadInput: When the run has none saved, or one does not fit.
    """
    if not info.config:
        raise BadInput(
            f"The run {info.name!r} (id {info.id}) has no saved config, so its model "
            "cannot be built as it was."
        )
    names = {field.name for field in dataclasses.fields(config)}
    return check_settings(config, {k: v for k, v in info.config.items() if k in names})
