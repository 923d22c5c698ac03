"""What counts as a job, and the decorator that registers one under a key."""

from collections.abc import Callable
from typing import Literal, TypeVar

from theseus_track.analysis import AnalysisBase, register
from theseus_track.jobs.trainer import Trainer

__all__ = ["job", "kind_of"]

C = TypeVar("C", bound=type)


def job(key: str) -> Callable[[C], C]:
    """Register a job under a key, as `@analysis` does for an analysis.

    Args:
        key: What the CLI and the ledger call it, such as "my/gpt/pretrain".

    Returns:
        A decorator that returns the class itself.

    Raises:
        TypeError: When the class is neither a Trainer nor an analysis.
        RegistryError: When the key is taken by another class; names both places.

    Example:
        ```python
        from theseus_track.demo import PretrainGPT
        from theseus_track.jobs import job


        @job("docs/jobs/small-gpt")
        class SmallGPT(PretrainGPT):
            pass
        ```
    """

    def decorate(cls: C) -> C:
        if kind_of(cls) is None:
            raise TypeError(
                f"@job({key!r}) is on {cls!r}, which is neither a Trainer nor an "
                "analysis. Inherit from theseus_track.jobs.Trainer."
            )
        register(key, cls)
        return cls

    return decorate


def kind_of(cls: object) -> Literal["trainer", "analysis"] | None:
    """Say what a class is; an analysis with a Trainer base is an analysis."""
    if not isinstance(cls, type):
        return None
    if issubclass(cls, AnalysisBase):
        return "analysis"
    return "trainer" if issubclass(cls, Trainer) else None
