"""Which trackers show a run: those that are given, or those that it began with."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from theseus_track.errors import BadInput
from theseus_track.records import RunInfo
from theseus_track.records.strict_json import Json
from theseus_track.sinks import Sink, WandbSink, check_sink, open_sink, sink_names

__all__ = ["first_trackers", "make_sinks", "settings_of"]

_log = logging.getLogger(__name__)


def settings_of(
    specs: Sequence[str | Sink],
    tensorboard: Any,
    wandb: Any,
    *,
    root: Path,
    first: Mapping[str, Json],
) -> dict[str, Json]:
    """Return what opens the trackers of an attempt again, after checking their names.

    Args:
        specs: `NAME`, `NAME:TARGET` or Sink objects.
        tensorboard: The user's log directory, or None.
        wandb: The user's `wandb.Run`, or None.
        root: The ledger's root.
        first: What run.json keeps of the run that is continued: a name without a
            target means the place there.

    Raises:
        BadInput: When one of them cannot be used.
    """
    settings: dict[str, Json] = {}
    for spec in specs:
        if isinstance(spec, str):
            name = check_sink(spec)
            settings[name] = first[spec] if spec in first else _kept(spec, root)
        elif isinstance(spec, Sink):
            settings[spec.name] = dict(getattr(spec, "settings", {}))
        else:
            raise BadInput(
                f"sinks holds {spec!r}; give names such as 'tensorboard' or objects "
                "with the methods of theseus_track.sinks.Sink."
            )
    if tensorboard is not None:
        if Path(tensorboard).is_file():
            raise BadInput(
                f"tensorboard={str(tensorboard)!r} is a file. Give the log directory."
            )
        logdir = str(Path(tensorboard).absolute())
        settings["tensorboard"] = {"logdir": logdir, "run": "", "metrics": False}
    if wandb is not None:
        place = (wandb.entity, wandb.project, wandb.id)
        settings["wandb"] = dict(zip(("entity", "project", "id"), place, strict=True))
    return settings


def first_trackers(first: Mapping[str, Json]) -> list[str]:
    """Return the trackers that a run began with, for an attempt that names none.

    Args:
        first: What run.json keeps of them.
    """
    names = sink_names()
    for name in first:
        if name not in names:
            _log.warning(
                "The run was shown by %r, which was an object and has no name that "
                "opens it again. Pass sinks=[...] to go on there.",
                name,
            )
    return [name for name in first if name in names]


def make_sinks(
    specs: Sequence[str | Sink], tensorboard: Any, wandb: Any, info: RunInfo
) -> list[Sink]:
    """Make the sinks of one attempt; none is open yet.

    Raises:
        BadInput: When one cannot be made, or two have one name.
    """
    wanted = [spec for spec in specs if tensorboard is None or spec != "tensorboard"]
    wanted += [] if tensorboard is None else ["tensorboard"]
    has_wandb = any(spec == "wandb" or isinstance(spec, WandbSink) for spec in wanted)
    wanted += [] if wandb is None or has_wandb else ["wandb"]
    made = [
        open_sink(_opened_by(spec, info), info) if isinstance(spec, str) else spec
        for spec in wanted
    ]
    for sink in made:
        if wandb is not None and isinstance(sink, WandbSink):
            sink.ride(wandb)
    names = [sink.name for sink in made]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(
                f"Two sinks are called {name!r}. Give each its own name, so that what "
                "was delivered can be told apart."
            )
    return made


def _opened_by(spec: str, info: RunInfo) -> str:
    """Return what opens the place that a name without a target means for a run."""
    settings = info.sinks.get(spec)
    kept = settings.get("spec") if isinstance(settings, dict) else None
    return kept if isinstance(kept, str) else spec


def _kept(spec: str, root: Path) -> dict[str, Json]:
    """Return what opens a sink again, from any working directory."""
    name, _, target = spec.partition(":")
    if name != "tensorboard":
        return {"spec": spec}
    return {"logdir": str(Path(target).absolute() if target else root / name)}
