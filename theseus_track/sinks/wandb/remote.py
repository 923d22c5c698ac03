"""What the server knows of a W&B run, asked before we write to it."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from theseus_track.sinks.wandb.address import Address

__all__ = ["RemoteRun", "define_again", "find", "is_online"]

# The codes of wandb 0.31 (MetricSummary in wandb_internal.proto); "copy" is what a
# key without a definition does.
_SUMMARIES = {
    1: "min",
    2: "max",
    3: "mean",
    4: "best",
    5: "last",
    6: "none",
    8: "first",
}
# Seconds that the server may take.
_ANSWERS = 15
_STEP_SYNC, _HIDDEN = 1, 2
# Of a run in another state somebody may write rows at this moment.
_OVER = ("finished", "failed", "crashed", "killed")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRun:
    """A run as the server has it.

    Attributes:
        address: Where it is, with its entity.
        over: Whether it takes rows from nobody.
        group: Its group, or "".
        name: What people call it.
        config: What its config says.
        definitions: Its metric definitions, as the config holds them.
    """

    address: Address
    over: bool
    group: str
    name: str
    config: Mapping[str, Any]
    definitions: Sequence[Mapping[str, Any]]


def is_online() -> bool:
    """Return whether W&B is set up to reach its server."""
    import wandb

    return wandb.setup().settings.mode in ("online", "shared", "run")


def find(address: Address) -> RemoteRun | None:
    """Ask the server for a run; None when it has none there.

    Raises:
        wandb.errors.CommError: When the server does not answer.
        wandb.errors.UsageError: When nobody is logged in.
    """
    import wandb
    from wandb.apis.public.runs import RunNotFoundError
    from wandb.errors import CommError

    try:
        run = wandb.Api(timeout=_ANSWERS).run(str(address))
    except CommError as error:
        # wandb 0.31 wraps the one in the other.
        if isinstance(error.exc, RunNotFoundError):
            return None
        raise
    config = dict(run.rawconfig)
    definitions = config.pop("_wandb", {}).get("m", [])
    return RemoteRun(
        address=Address(entity=run.entity, project=run.project, id=run.id),
        over=run.state in _OVER,
        group=run.group or "",
        name=run.name or run.id,
        config=config,
        definitions=definitions,
    )


def define_again(run: Any, definitions: Sequence[Mapping[str, Any]]) -> None:
    """Define a run's metrics as they were: resuming it made the server forget them.

    The config of a resumed run replaces the older one, with the definitions of this
    process alone (tests/sinks/test_wandb_online.py).

    Args:
        run: A `wandb.Run` that was just resumed.
        definitions: What `RemoteRun` has.
    """
    names = [str(entry.get("1") or entry.get("2") or "") for entry in definitions]
    for name, entry in zip(names, definitions, strict=True):
        if not name:
            continue
        position = entry.get("5", 0)
        options = entry.get("6", [])
        summaries = [_SUMMARIES[n] for n in entry.get("7", []) if n in _SUMMARIES]
        run.define_metric(
            name,
            step_metric=names[position - 1] if position else entry.get("4"),
            step_sync=True if _STEP_SYNC in options else None,
            hidden=True if _HIDDEN in options else None,
            summary=",".join(summaries) or None,
        )
