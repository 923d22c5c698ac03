"""Begins a W&B run of ours, as the ledger knows it."""

import hashlib
import re
from typing import Any

from theseus_track.records import RunInfo

__all__ = ["begin"]

_IN_ID = re.compile(r"[^A-Za-z0-9_-]")
_IN_PROJECT = re.compile(r"[/\\#?%:]")
_LONGEST_ID = 64
_LONGEST = 128
_LONGEST_TAG = 64
# Seconds. By default wandb 0.31 waits for a server that is gone for ever.
_BEGINS = 30.0
_FINISHES = 30.0


def begin(info: RunInfo, *, target: str, companion: bool) -> Any:
    """Begin or continue the run; `WANDB_MODE` and `WANDB_DIR` hold for it.

    Args:
        info: Who the run is.
        target: `PROJECT` or `ENTITY/PROJECT`; "" for the project of the run.
        companion: Begin one of another id in the group of the run.

    Returns:
        A `wandb.Run` that is not `wandb.run`: the user may begin one of theirs.

    Raises:
        wandb.errors.CommError: When the server does not answer.
        wandb.errors.UsageError: When nobody is logged in.
    """
    import wandb

    entity, _, project = target.rpartition("/")
    run = wandb.init(
        entity=entity or None,
        project=_IN_PROJECT.sub("-", project or info.project)[:_LONGEST],
        tags=[tag[:_LONGEST_TAG] for tag in dict.fromkeys(info.tags) if tag],
        **(_companion(info) if companion else _itself(info)),
        resume="allow",
        reinit="create_new",
        settings=wandb.Settings(
            # The user's streams stay theirs.
            console="off",
            init_timeout=_BEGINS,
            finish_timeout=_FINISHES,
            # What is in wandb's memory when a process is killed is lost; by default
            # that is a quarter of a minute (tests/sinks/test_wandb_owning.py).
            x_transaction_log_flush_interval=1.0,
        ),
    )
    # Else the user's own `wandb.init` would be handed this run.
    wandb.setup().remove_active_run(run)
    return run


def _itself(info: RunInfo) -> dict[str, Any]:
    return {
        "name": info.name[:_LONGEST],
        "id": _run_id(info.id),
        "group": info.group[:_LONGEST] if info.group else None,
        "config": dict(info.config),
    }


def _companion(info: RunInfo) -> dict[str, Any]:
    return {
        "name": f"{info.name} (analysis)"[:_LONGEST],
        "id": _run_id(f"{info.id}-analysis"),
        "group": (info.group or info.id)[:_LONGEST],
        "job_type": "theseus-analysis",
        "config": {**info.config, "theseus/source_run": info.id},
    }


def _run_id(text: str) -> str:
    """Return an id that W&B takes; the same one for the same text."""
    safe = _IN_ID.sub("-", text)[:_LONGEST_ID]
    if safe == text:
        return text
    return f"{safe[:48]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
