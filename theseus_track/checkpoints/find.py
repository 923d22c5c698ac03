"""Finding every checkpoint below a directory; imports no JAX and changes nothing."""

import difflib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from theseus_track.checkpoints.checkpoint import (
    Checkpoint,
    Clock,
    Format,
    Found,
    Ignored,
)
from theseus_track.checkpoints.layout import (
    Layout,
    has_traces,
    is_msgpack,
    read_layout,
)
from theseus_track.checkpoints.steps import (
    file_step,
    group_of,
    number_in,
    step_beside,
)
from theseus_track.errors import CheckpointError, NotFound

__all__ = ["StepRule", "find_checkpoints"]

StepRule = Callable[[Path], int | None]
"""Says which training step a checkpoint is of, >= 0; None passes over it."""

# A run directory in which checkpoints lie deeper is given as the directory itself.
_DEPTH = 6
_PART = re.compile(r".*-\d+-of-\d+\.safetensors")
_FILE_NAME = re.compile(r"[A-Za-z_-]*\d+")


def find_checkpoints(
    directory: str | os.PathLike[str], *, step_of: StepRule | None = None
) -> Found:
    """Find the checkpoints in a directory and below, whoever wrote them.

    Found are the directories of Orbax, old and new, with one item or several, as one
    tree, in OCDBT or Zarr; those of its second API; the files of Flax; safetensors;
    and the layout of the original Theseus. Only names and small files are read.

    Args:
        directory: Where to look; relative paths and blanks are fine. It may be one
            checkpoint itself.
        step_of: Says the training step of a checkpoint's path. By default it is what
            our Trainer wrote into the checkpoint, else the last number in its name,
            else in that of the folder around it.

    Returns:
        All that was found, in order.

    Raises:
        NotFound: When there is no such directory; nothing is created.
        CheckpointError: When it cannot be listed.
    """
    root = Path(directory).expanduser().resolve()
    if not root.exists():
        raise NotFound(f"There is no directory {root}.{_near(root)}")
    try:
        search = _Search(root, step_of)
        seen = list(search.scan(root, _DEPTH))
        if not seen and root.is_dir() and _in_pieces(root):
            seen = list(search.without(root, set()))
    except OSError as error:
        raise CheckpointError(f"{root} cannot be listed: {error}") from error
    checkpoints = [one for one in seen if isinstance(one, Checkpoint)]
    checkpoints.sort(key=_order)
    return Found(
        directory=root,
        checkpoints=tuple(checkpoints),
        ignored=tuple(one for one in seen if isinstance(one, Ignored)),
    )


def _alone(path: Path, kind: Format) -> Layout:
    """Return the layout of a checkpoint that is a single file."""
    return Layout(
        items={"": path}, format=kind, state="complete", reason=None, about={}
    )


def _order(one: Checkpoint) -> tuple[str, int, str]:
    return (one.group, -1 if one.step is None else one.step, one.path.name)


def _near(root: Path) -> str:
    """Name what is there instead of a directory with a typing error."""
    parent = next(p for p in root.parents if p.is_dir())
    missing = root.relative_to(parent).parts[0]
    names = [entry.name for entry in parent.iterdir() if entry.is_dir()]
    close = difflib.get_close_matches(missing, names, n=1)
    return f" Did you mean {str(parent / close[0])!r}?" if close else ""


class _Search:
    """One walk below a root."""

    def __init__(self, root: Path, step_of: StepRule | None) -> None:
        self._root = root
        self._step_of = step_of

    def scan(self, path: Path, depth: int) -> Iterator[Checkpoint | Ignored]:
        """Yield what a path is, or what is below it."""
        if path.is_file():
            yield from self._file(path)
            return
        layout = read_layout(path)
        if layout is not None:
            yield self._checkpoint(path, layout)
            return
        if not depth or has_traces(path):
            return
        children = sorted(filter(self._is_own, path.iterdir()))
        below = {child: self._below(child, depth - 1) for child in children}
        prefixes = _prefixes(path, below)
        for child, seen in below.items():
            yield from seen
            # Without a number it may be an item of this one, which is then in pieces.
            alone = number_in(child.name) or not number_in(path.name)
            if not seen and child.is_dir() and alone:
                yield from self.without(child, prefixes)

    def _below(self, path: Path, depth: int) -> list[Checkpoint | Ignored]:
        try:
            return list(self.scan(path, depth))
        except FileNotFoundError:
            # A link to nowhere, or its writer has renamed or removed it meanwhile.
            return []

    def _is_own(self, path: Path) -> bool:
        """Leave out what is hidden, and links to what is found without them."""
        if path.name.startswith("."):
            return False
        return not (path.is_symlink() and path.resolve().is_relative_to(self._root))

    def without(self, path: Path, prefixes: set[str]) -> Iterator[Checkpoint | Ignored]:
        """Say what a directory is that holds no checkpoint but may be named as one."""
        found = number_in(path.name)
        reason = ""
        if _in_pieces(path):
            reason = "its _METADATA is missing"
        elif found is None:
            return
        elif not any(path.iterdir()) and (found[0] in prefixes or not found[0]):
            reason = "it is empty"
        if reason:
            yield self._checkpoint(
                path,
                Layout(
                    items={}, format="unknown", state="broken", reason=reason, about={}
                ),
            )
        else:
            yield Ignored(path=path, reason="it holds no checkpoint")

    def _file(self, path: Path) -> Iterator[Checkpoint | Ignored]:
        if path.suffix == ".safetensors":
            if _PART.fullmatch(path.name):
                yield Ignored(
                    path=path, reason="it is one part of several; join them in one file"
                )
                return
            yield self._checkpoint(path, _alone(path, "safetensors"))
        elif _FILE_NAME.fullmatch(path.name):
            if not is_msgpack(path):
                reason = "it is a file in no known format"
                yield Ignored(path=path, reason=reason)
                return
            yield self._checkpoint(path, _alone(path, "msgpack"))

    def _checkpoint(self, path: Path, layout: Layout) -> Checkpoint | Ignored:
        custom = layout.about.get("custom_metadata")
        custom = custom if isinstance(custom, dict) else {}
        step = self._step(path, custom)
        if step is None and self._step_of is not None:
            return Ignored(path=path, reason="the step rule passes over it")
        wall_time, clock = _wall_time(path, layout.about, custom)
        run = custom.get("run")
        return Checkpoint(
            path=path,
            step=step,
            group=group_of(path, self._root),
            format=layout.format,
            items=layout.items,
            state=layout.state,
            reason=layout.reason,
            wall_time=wall_time,
            wall_time_source=clock,
            bytes=_size(path),
            run=run if isinstance(run, str) else None,
        )

    def _step(self, path: Path, custom: dict[str, Any]) -> int | None:
        if self._step_of is not None:
            return self._step_of(path)
        step = custom.get("step")
        if isinstance(step, int) and not isinstance(step, bool) and step >= 0:
            return step
        name = path.name.partition(".orbax-checkpoint-tmp")[0]
        beside = step_beside(path)
        return file_step(path.with_name(name)) if beside is None else beside


def _in_pieces(path: Path) -> bool:
    """Tell a directory in which Orbax has written, or its item, without metadata."""
    inner = [child for child in path.iterdir() if child.is_dir()]
    return any(map(has_traces, (path, *inner)))


def _prefixes(path: Path, below: dict[Path, list[Checkpoint | Ignored]]) -> set[str]:
    """Return how the names of the checkpoints right below a directory begin."""
    found = [
        number_in(one.path.name)
        for seen in below.values()
        for one in seen
        if isinstance(one, Checkpoint) and one.path.parent == path
    ]
    return {one[0] for one in found if one is not None}


def _wall_time(path: Path, about: Any, custom: dict[str, Any]) -> tuple[float, Clock]:
    """Say when the save began: the nearest that is known to the training step."""
    ours = custom.get("wall_time")
    if isinstance(ours, int | float) and not isinstance(ours, bool):
        return float(ours), "theseus-track"
    nanoseconds = about.get("init_timestamp_nsecs")
    if isinstance(nanoseconds, int):
        return nanoseconds / 1e9, "orbax"
    return path.stat().st_mtime, "mtime"


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += Path(folder, name).lstat().st_size
            except FileNotFoundError:
                continue  # Its writer has moved or removed it meanwhile.
    return total
