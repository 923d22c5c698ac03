"""What one directory is on disk, by its small files alone; nothing is opened twice."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from theseus_track.checkpoints.checkpoint import Format, State
from theseus_track.checkpoints.steps import number_in

__all__ = ["Layout", "has_traces", "is_msgpack", "is_unfinished", "read_layout"]

_ITEM = "_METADATA"
_WHOLE = "_CHECKPOINT_METADATA"
_UNFINISHED = ".orbax-checkpoint-tmp"
_TRACES = {"_sharding", "array_metadatas", "commit_success.txt", "manifest.ocdbt", "d"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a checkpoint lies on disk.

    Attributes:
        items: Name -> directory of each tree of arrays; "" for the directory itself.
        format: How the arrays of the first item are stored.
        state: What can be told without reading arrays.
        reason: Why it is not complete.
        about: What Orbax wrote about the checkpoint; empty before its release 0.6.
    """

    items: Mapping[str, Path]
    format: Format
    state: State
    reason: str | None
    about: Mapping[str, Any]


def is_unfinished(name: str) -> bool:
    """Tell the name of a directory that Orbax has not renamed to its own yet."""
    return _UNFINISHED in name


def has_traces(path: Path) -> bool:
    """Tell whether a directory holds pieces of an Orbax checkpoint."""
    names = {entry.name for entry in path.iterdir()}
    return bool(names & _TRACES) or any(n.startswith("ocdbt.process_") for n in names)


def read_layout(path: Path) -> Layout | None:
    """Say how a directory is laid out; None when it is no checkpoint."""
    about = _read_json(path / _WHOLE)
    if is_unfinished(path.name):
        return _broken("in progress", "it is being written, or its writer died", about)
    whole = (path / _WHOLE).is_file()
    items = {"": path} if _is_item(path) else _items(path, whole=whole)
    if not items:
        if not whole:
            return None
        return _broken("broken", _missing(path, about) or "it has no item", about)
    formats = {name: _format(item) for name, item in items.items()}
    reason = _missing(path, about)
    for name, item in items.items():
        reason = reason or _damage(item, formats[name], name)
    state: State = "broken" if reason else "complete"
    if not reason and "commit_timestamp_nsecs" in about and not _committed(about):
        state, reason = "in progress", "it was not committed"
    return Layout(
        items=items,
        format=next(iter(formats.values())),
        state=state,
        reason=reason,
        about=about,
    )


def _broken(state: State, reason: str, about: Mapping[str, Any]) -> Layout:
    return Layout(items={}, format="unknown", state=state, reason=reason, about=about)


def _committed(about: Mapping[str, Any]) -> bool:
    return isinstance(about["commit_timestamp_nsecs"], int)


def _is_item(path: Path) -> bool:
    # Before 0.4, and with everything aggregated, `checkpoint` was all there was.
    if (path / _ITEM).is_file():
        return True
    old = path / "checkpoint"
    return old.is_file() and is_msgpack(old) and not has_traces(path)


def _items(path: Path, *, whole: bool) -> dict[str, Path]:
    """Return the trees below a step's directory.

    A directory of checkpoints looks the same when each of them is one tree. Those
    have a number, or metadata of their own.
    """
    return {
        child.name: child
        for child in sorted(path.iterdir())
        if child.is_dir()
        and _is_item(child)
        and not (child / _WHOLE).is_file()
        and (whole or number_in(child.name) is None)
    }


def _missing(path: Path, about: Mapping[str, Any]) -> str | None:
    """Name an item that the checkpoint's own metadata promise and that is not whole."""
    handlers = about.get("item_handlers")
    for name, handler in handlers.items() if isinstance(handlers, dict) else ():
        item = path / name
        if not item.is_dir():
            return f"its item {name!r} is missing"
        holds_arrays = any(kind in str(handler) for kind in ("PyTree", "Standard"))
        if holds_arrays and not _is_item(item):
            return f"{name}/{_ITEM} is missing"
    return None


def _damage(item: Path, kind: Format, name: str) -> str | None:
    """Name what an item lacks, from its small files."""
    where = f"{name}/" if name else ""
    if (item / _ITEM).is_file() and "tree_metadata" not in _read_json(item / _ITEM):
        return f"{where}{_ITEM} cannot be read"
    if kind == "unknown":
        return f"{where}manifest.ocdbt is missing"
    if kind.startswith("ocdbt"):
        data = item / "d"
        if not data.is_dir() or not any(data.iterdir()):
            return f"{where}d, which holds the arrays, is missing or empty"
    return None


def _format(item: Path) -> Format:
    about = _read_json(item / _ITEM)
    third = about.get("use_zarr3") is True
    if (item / "manifest.ocdbt").is_file():
        return "ocdbt zarr3" if third else "ocdbt"
    if about.get("use_ocdbt") is True:
        return "unknown"
    if any((child / ".zarray").is_file() for child in item.iterdir()):
        return "zarr"
    if any((child / "zarr.json").is_file() for child in item.iterdir()):
        return "zarr3"
    return "msgpack" if (item / "checkpoint").is_file() else "unknown"


def is_msgpack(path: Path) -> bool:
    """Tell whether a file begins as a map in msgpack does."""
    with path.open("rb") as file:
        first = file.read(1)
    return bool(first) and (first[0] & 0xF0 == 0x80 or first[0] in (0xDE, 0xDF))


def _read_json(path: Path) -> dict[str, Any]:
    """Return a JSON object; empty when there is none that can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
