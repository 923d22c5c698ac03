"""Begins a W&B run of ours, or takes up one that exists."""

import hashlib
import re
from typing import Any

from theseus_track.records import RunInfo
from theseus_track.sinks.wandb.address import Address
from theseus_track.sinks.wandb.remote import RemoteRun, define_again, find, is_online

__all__ = [
    "SOURCE",
    "begin",
    "begin_companion",
    "companion_address",
    "own_address",
    "take_up",
]

SOURCE = "theseus/run"
"""The key in the config of a run of ours that says which run of the ledger it shows."""

_IN_ID = re.compile(r"[^A-Za-z0-9_-]")
_IN_PROJECT = re.compile(r"[/\\#?%:]")
_LONGEST_ID = 64
_LONGEST = 128
_LONGEST_TAG = 64
# Seconds. By default wandb 0.31 waits for a server that is gone for ever.
_BEGINS = 30.0
_FINISHES = 30.0


def begin(info: RunInfo, place: Address) -> Any:
    """Begin or continue the run that shows a run of the ledger.

    `WANDB_MODE` and `WANDB_DIR` hold for it, as for the others here.

    Args:
        info: Who the run is.
        place: Its entity and project.

    Returns:
        A `wandb.Run` that is not `wandb.run`: the user may begin one of theirs.

    Raises:
        wandb.errors.CommError: When the server does not answer.
        wandb.errors.UsageError: When nobody is logged in.
    """
    return _begin(
        own_address(info, place),
        tags=_tags(info),
        name=info.name[:_LONGEST],
        group=info.group[:_LONGEST] if info.group else None,
        config={**info.config, SOURCE: info.id},
    )


def begin_companion(info: RunInfo, beside: Address) -> Any:
    """Begin or continue a run beside another, in its group.

    Args:
        info: The run of the ledger.
        beside: Where the other one is; without an id, the run that the ledger calls
            `info.id`.

    Raises:
        wandb.errors.CommError: When the server does not answer.
        wandb.errors.UsageError: When nobody is logged in.
    """
    source = beside.id or info.id
    return _begin(
        companion_address(info, beside),
        tags=_tags(info),
        name=f"{info.name} (analysis)"[:_LONGEST],
        group=(info.group or source)[:_LONGEST],
        job_type="theseus-analysis",
        config={**info.config, "theseus/source_run": source},
    )


def take_up(remote: RemoteRun) -> Any:
    """Take up a run that exists and that nobody writes to, as it is."""
    run = _init(remote.address, resume="must")
    define_again(run, remote.definitions)
    return run


def own_address(info: RunInfo, place: Address) -> Address:
    """Return where the run that shows `info` is, or will be."""
    project = _project(place.project or info.project)
    return Address(entity=place.entity, project=project, id=_run_id(info.id))


def companion_address(info: RunInfo, beside: Address) -> Address:
    """Return where the companion of a run is, or will be; see `begin_companion`."""
    project = _project(beside.project or info.project)
    name = _run_id(f"{beside.id or info.id}-analysis")
    return Address(entity=beside.entity, project=project, id=name)


def _begin(address: Address, **fields: Any) -> Any:
    # Asked before: by taking a run up the server forgets its definitions.
    known = find(address) if is_online() else None
    run = _init(address, resume="allow", **fields)
    if known is not None:
        define_again(run, known.definitions)
    return run


def _init(address: Address, **fields: Any) -> Any:
    import wandb

    run = wandb.init(
        entity=address.entity or None,
        project=address.project,
        id=address.id,
        reinit="create_new",
        settings=wandb.Settings(
            # The user's streams stay theirs.
            console="off",
            init_timeout=_BEGINS,
            finish_timeout=_FINISHES,
            finish_timeout_raises=True,
            # What is in wandb's memory when a process is killed is lost; by default
            # that is a quarter of a minute (tests/sinks/test_wandb_owning.py).
            x_transaction_log_flush_interval=1.0,
        ),
        **fields,
    )
    # Else the user's own `wandb.init` would be handed this run.
    wandb.setup().remove_active_run(run)
    return run


def _tags(info: RunInfo) -> list[str]:
    return [tag[:_LONGEST_TAG] for tag in dict.fromkeys(info.tags) if tag]


def _project(text: str) -> str:
    return _IN_PROJECT.sub("-", text)[:_LONGEST]


def _run_id(text: str) -> str:
    """Return an id that W&B takes; the same one for the same text."""
    safe = _IN_ID.sub("-", text)[:_LONGEST_ID]
    if safe == text:
        return text
    return f"{safe[:48]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
