"""What identifies a run and what it was made with: the content of `run.json`."""

import dataclasses
from collections.abc import Mapping

from theseus_track.errors import BadInput
from theseus_track.records.strict_json import Json

__all__ = ["FORMAT_VERSION", "RunInfo"]

FORMAT_VERSION = 1
"""Version of the ledger format that this package writes."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """One training run, as its `run.json` tells it.

    Attributes:
        project: The project that the run belongs to.
        name: The name that people use; may repeat.
        id: The identity; unique within a root.
        group: Runs that belong together, or None.
        tags: Labels to filter by.
        config: The hyperparameters, as JSON.
        created: When the run began, in seconds since the epoch, UTC.
        job: Where the code is, `module:Class` or `file.py:Class`, or None.
        job_source: The source text of the job's file, or None.
        versions: Package name -> version.
        sinks: Sink name -> its settings, never a key or password.
        recipe: The recipe file that makes its checkpoints runnable, or None.
        checkpoints: The directory of its checkpoints, or None.
        format: Version of the ledger format.
    """

    project: str
    name: str
    id: str
    created: float
    group: str | None = None
    tags: tuple[str, ...] = ()
    config: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    job: str | None = None
    job_source: str | None = None
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    sinks: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    recipe: str | None = None
    checkpoints: str | None = None
    format: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        for field in ("project", "name", "id"):
            value = getattr(self, field)
            if not isinstance(value, str) or not value.strip():
                raise BadInput(f"A run's {field} must be a text, not {value!r}.")
