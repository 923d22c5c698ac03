"""Finds a sink by its name: ours, or another package's by entry point.

A package adds a sink with a function of two arguments in its `pyproject.toml`:

    [project.entry-points."theseus_track.sinks"]
    mytracker = "mytracker.theseus:make_sink"

`make_sink(target, info)` returns a sink that is not open. `target` is what
followed the name and a colon, or ""; `info.sinks` holds the settings that the run
was started with. It runs once per run, on rank 0, on the calling thread: it must
neither connect nor write.
"""

import dataclasses
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TypeAlias

from theseus_track.errors import BadInput, RegistryError, describe_unknown
from theseus_track.records import RunInfo
from theseus_track.sinks.contract import Sink
from theseus_track.sinks.memory import MemorySink
from theseus_track.sinks.tensorboard import TensorBoardSink
from theseus_track.sinks.wandb import WandbSink

__all__ = [
    "GROUP",
    "Destination",
    "MakeSink",
    "check_sink",
    "destination",
    "open_sink",
    "sink_names",
]

GROUP = "theseus_track.sinks"
MakeSink: TypeAlias = Callable[[str, RunInfo], Sink]


def sink_names() -> list[str]:
    """Return the names of all sinks that are installed, sorted."""
    return sorted({*_OURS, *(point.name for point in _entry_points())})


def check_sink(spec: str) -> str:
    """Return the sink's name in a spec, before anything is made.

    Args:
        spec: `NAME` or `NAME:TARGET`, such as "tensorboard:logs".

    Raises:
        BadInput: When no sink has that name; the message lists those that exist.
    """
    name = spec.partition(":")[0]
    names = sink_names()
    if name not in names:
        raise BadInput(describe_unknown("sink", name, names))
    return name


def open_sink(spec: str, info: RunInfo) -> Sink:
    """Make the sink that a spec names; `Delivery` opens it on its own thread.

    Args:
        spec: `NAME` or `NAME:TARGET`, such as "tensorboard:logs".
        info: The run that it will show.

    Raises:
        BadInput: When no sink has that name, or it cannot be made.
        RegistryError: When two packages claim the name, or theirs cannot be loaded.
    """
    name = check_sink(spec)
    target = spec.partition(":")[2]
    make = _OURS[name] if name in _OURS else _load(name)
    sink = make(target, info)
    if not isinstance(sink, Sink):
        raise RegistryError(
            f"The sink {name!r} made a {type(sink).__name__}, which is no sink: it "
            "needs name, can, open, write, flush and close "
            "(theseus_track.sinks.contract)."
        )
    return sink


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where a sink shows a run.

    Attributes:
        spec: What `open_sink` takes.
        mark: What the marks in the ledger call it. The place that the training
            itself showed the run at is called by the sink's name alone.
    """

    spec: str
    mark: str


def destination(spec: str, info: RunInfo, root: Path) -> Destination:
    """Find out which place a spec means, for a run that was trained already.

    Args:
        spec: `NAME` for the place that the run was started with, or `NAME:TARGET`.
        info: The run.
        root: The ledger's root; without a target and without a place of the run,
            "tensorboard" is in `ROOT/tensorboard`.

    Raises:
        BadInput: When no sink has that name.
    """
    name = check_sink(spec)
    target = spec.partition(":")[2]
    settings = info.sinks.get(name)
    own = settings if isinstance(settings, dict) else {}
    first = own.get("spec")
    if name == "tensorboard":
        if not target and name not in info.sinks:
            target = str(root / name)
        # The same place from every working directory.
        target = str(Path(target).absolute()) if target else ""
        first = f"{name}:{own['logdir']}" if "logdir" in own else first
        if not target or f"{name}:{target}" == first:
            return Destination(spec=name, mark=name)
        return Destination(spec=f"{name}:{target}", mark=f"{name}:{target}")
    if not target or spec == first:
        return Destination(spec=first if isinstance(first, str) else spec, mark=name)
    return Destination(spec=spec, mark=spec)


def _entry_points() -> list[EntryPoint]:
    return list(entry_points(group=GROUP))


def _load(name: str) -> MakeSink:
    points = [point for point in _entry_points() if point.name == name]
    if len({point.value for point in points}) > 1:
        claims = ", ".join(point.value for point in points)
        raise RegistryError(f"Two packages claim the sink {name!r}: {claims}.")
    try:
        make: MakeSink = points[0].load()
    except (ImportError, AttributeError) as error:
        raise RegistryError(
            f"The sink {name!r} cannot be loaded from {points[0].value}: {error}. "
            "Repair or uninstall that package."
        ) from error
    return make


def _make_memory(target: str, info: RunInfo) -> Sink:  # noqa: ARG001 (MakeSink)
    return MemorySink()


def _make_tensorboard(target: str, info: RunInfo) -> Sink:
    settings = info.sinks.get("tensorboard")
    settings = settings if isinstance(settings, dict) else {}
    spec = settings.get("spec")
    given = spec.partition(":")[2] if isinstance(spec, str) else ""
    logdir = target or settings.get("logdir") or given
    if not isinstance(logdir, str) or not logdir:
        raise BadInput(
            "The sink 'tensorboard' needs a log directory: "
            "'tensorboard:DIR', or tensorboard=DIR in open_run."
        )
    if Path(logdir).is_file():
        raise BadInput(
            f"The sink 'tensorboard' cannot write to {logdir!r}, which is a file. "
            "Give a directory, as in 'tensorboard:DIR'."
        )
    if target:
        return TensorBoardSink(logdir)
    run = settings.get("run")
    return TensorBoardSink(
        logdir,
        run=run if isinstance(run, str) else None,
        metrics=settings.get("metrics") is not False,
    )


def _make_wandb(target: str, info: RunInfo) -> Sink:  # noqa: ARG001 (MakeSink)
    return WandbSink(target=target)


_OURS: Mapping[str, MakeSink] = {
    "memory": _make_memory,
    "tensorboard": _make_tensorboard,
    "wandb": _make_wandb,
}
