"""What was found in a directory of checkpoints: the records."""

import dataclasses
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from theseus_track.errors import BadInput, NotFound

__all__ = ["Checkpoint", "Found", "Ignored"]

Format = Literal[
    "ocdbt", "ocdbt zarr3", "zarr", "zarr3", "msgpack", "safetensors", "unknown"
]
State = Literal["complete", "in progress", "broken"]
Clock = Literal["theseus-track", "orbax", "mtime"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One saved state on disk.

    Attributes:
        path: Its directory or file; absolute.
        step: The training step that it is of, >= 0; None where nothing tells.
        group: What it shares with its neighbours: the folders above it, below the
            directory searched, and its name without the number, such as "ckpt_".
        format: How the arrays are stored.
        items: Name -> directory of each tree of arrays; the name is "" where the
            checkpoint is one tree itself.
        state: `complete` can be read as far as its small files tell: damage inside
            the array files shows only when they are read. `in progress` is being
            written, or was when its writer died.
        reason: Why it is not complete; None if it is.
        wall_time: When the save began, in seconds since the epoch, UTC.
        wall_time_source: Who says so: the metadata that our Trainer wrote, those of
            Orbax, or (a copy loses it) the file's modification time.
        bytes: Size on disk, in bytes.
        run: The id of the run that our Trainer wrote into it; else None.
    """

    path: Path
    step: int | None
    group: str
    format: Format
    items: Mapping[str, Path]
    state: State
    reason: str | None
    wall_time: float
    wall_time_source: Clock
    bytes: int
    run: str | None = None

    @property
    def identity(self) -> str:
        """Its name and time: what a result remembers, and tells a rewritten one."""
        return f"{self.path.name}@{self.wall_time:.6f}"

    def to_json(self) -> dict[str, object]:
        """Return what strict JSON can hold."""
        return {
            "path": str(self.path),
            "step": self.step,
            "group": self.group,
            "format": self.format,
            "items": sorted(self.items),
            "state": self.state,
            "reason": self.reason,
            "wall_time": self.wall_time,
            "wall_time_source": self.wall_time_source,
            "bytes": self.bytes,
            "run": self.run,
        }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """What looks like a checkpoint by its name and is none.

    Attributes:
        path: Where it is; absolute.
        reason: What it is instead.
    """

    path: Path
    reason: str

    def to_json(self) -> dict[str, object]:
        """Return what strict JSON can hold."""
        return {"path": str(self.path), "reason": self.reason}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a directory holds.

    Attributes:
        directory: What was searched; absolute.
        checkpoints: Every checkpoint, also the unusable ones, by group and step.
        ignored: What only looks like one.
    """

    directory: Path
    checkpoints: tuple[Checkpoint, ...]
    ignored: tuple[Ignored, ...]

    def by_step(self, group: str | None = None) -> dict[int, Checkpoint]:
        """Return step -> checkpoint of the complete ones, ascending.

        Args:
            group: Only the checkpoints of this group. Needed where there are several:
                they may be of several models or runs.

        Raises:
            NotFound: When none is complete, or there is no such group.
            BadInput: When there are several groups and none was chosen, or a group
                has a step twice.
        """
        groups = Counter(one.group for one in self._usable())
        if group is None and len(groups) > 1:
            raise BadInput(
                f"{self.directory} holds checkpoints of several groups: "
                f"{_counted(groups)}. Choose one of them with --group."
            )
        if group is not None and group not in {c.group for c in self.checkpoints}:
            raise NotFound(
                f"{self.directory} holds no checkpoints {group!r}. It holds: "
                f"{_counted(groups)}."
            )
        steps: dict[int, Checkpoint] = {}
        for one in self._usable():
            if one.step is None or group not in (None, one.group):
                continue
            other = steps.setdefault(one.step, one)
            if other is not one:
                raise BadInput(
                    f"Step {one.step} is there twice: {other.path} and {one.path}. "
                    "Give the directory of one of them."
                )
        if not steps:
            raise NotFound(self._why_none())
        return dict(sorted(steps.items()))

    def _usable(self) -> list[Checkpoint]:
        return [
            one
            for one in self.checkpoints
            if one.state == "complete" and one.step is not None
        ]

    def _why_none(self) -> str:
        unusable = [
            f"{one.path.name} is {one.state}: {one.reason}"
            if one.reason
            else f"{one.path.name} tells no step"
            for one in self.checkpoints
        ]
        listed = "; ".join(unusable[:5])
        why = f" ({listed})" if listed else ""
        return f"There is no complete checkpoint with a step in {self.directory}{why}."

    def to_json(self) -> dict[str, object]:
        """Return what strict JSON can hold."""
        return {
            "directory": str(self.directory),
            "checkpoints": [one.to_json() for one in self.checkpoints],
            "ignored": [one.to_json() for one in self.ignored],
        }


def _counted(groups: Mapping[str, int]) -> str:
    return ", ".join(f"{group!r} ({count})" for group, count in groups.items())
