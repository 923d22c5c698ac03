"""open_run: find out who the run is, check everything, then start the machinery."""

import dataclasses
import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from theseus_track.errors import BadInput, NotFound
from theseus_track.run.engine import Engine
from theseus_track.run.handle import CLOSE_TIMEOUT, RunHandle, check_timeout
from theseus_track.run.identity import make_info
from theseus_track.run.rank import is_one_of_several, is_rank_zero
from theseus_track.run.trackers import first_trackers, make_sinks, settings_of
from theseus_track.sinks import Sink, WandbSink
from theseus_track.sinks.backfilling import backfill_of
from theseus_track.store import Run, Store, resolve_root

__all__ = ["open_run"]

_log = logging.getLogger(__name__)

Resume = Literal["auto", "must", "never"]


def open_run(
    root: str | os.PathLike[str] | None = None,
    *,
    project: str = "default",
    name: str | None = None,
    id: str | None = None,
    group: str | None = None,
    tags: Iterable[str] = (),
    config: Any = None,
    resume: Resume = "auto",
    wandb: Any = None,
    tensorboard: str | os.PathLike[str] | None = None,
    sinks: Iterable[str | Sink] = (),
    recipe: str | os.PathLike[str] | None = None,
    checkpoints: str | os.PathLike[str] | None = None,
    job: str | None = None,
    job_source: str | None = None,
    resumed_at: int | None = None,
    strict: bool = False,
    close_timeout: float = CLOSE_TIMEOUT,
) -> RunHandle:
    """Open a run: one handle that keeps, draws and shows what is logged to it.

    Call it once in every process; with several JAX processes, after
    `jax.distributed.initialize()` and with the same `id`. Only rank 0 writes. In a
    single process it starts no JAX backend.

    Args:
        root: Where the ledger is: this, else `$THESEUS_ROOT`, else `./results`.
        project: The project that the run belongs to.
        name: What people call it; may repeat. Default: made from the id.
        id: Its identity within the root. A run of that id is continued by a new
            attempt. Needed with several processes.
        group: Runs that belong together.
        tags: Labels to filter by.
        config: Hyperparameters: a dict, a dataclass, an argparse Namespace.
        resume: `auto` continues a run whose id exists and else begins one; `must`
            needs it to exist; `never` needs it not to.
        wandb: A W&B run of yours; gives project, name, id, group, tags and config
            where they are not given here. Figures and tables appear in its rows, and
            its own steps and metrics stay as they are.
        tensorboard: Your own TensorBoard log directory: figures and tables appear
            beside your curves, in `theseus/`. Metrics stay in the ledger there.
        sinks: More trackers: `NAME`, `NAME:TARGET` or Sink objects; "tensorboard"
            alone writes to `ROOT/tensorboard`, metrics included. "wandb" rides on
            the W&B run that exists at the first delivery, and else begins one. A run
            that is continued without `sinks`, `wandb` and `tensorboard` goes on in
            the trackers that it began with, and a name alone means its place there.
        recipe: The file that makes the checkpoints runnable for a replay.
        checkpoints: The directory of this run's checkpoints.
        job: Where the code is, `module:Class` or `file.py:Class`.
        job_source: The source text of that file.
        resumed_at: The first step that this attempt may write; older results of
            this run at or above it are superseded. Default: the first step logged.
        strict: Raise faults of analyses, rendering and sinks at the next call,
            instead of logging each once.
        close_timeout: The longest that the end waits for all to be drawn and
            delivered, in seconds: in `close`, when the block is left, at interpreter
            exit, and in `wandb.finish` of your W&B run. What is left is in the ledger.

    Returns:
        A RunHandle; use it as a context manager or call `close`. At interpreter
        exit it is closed with a bounded flush.

    Raises:
        BadInput: When an argument cannot be used; nothing was written.
        NotFound: When `resume="must"` and there is no such run.
        LedgerError: When the root cannot be written.

    Example:
        ```python
        from theseus_track import open_run

        with open_run("./results", project="docs", name="example") as run:
            run.log_metrics({"train/loss": 2.5}, step=0)
            run.log_result("facts", {"layers": 4, "width": 128}, step=0)
        ```
    """
    if resume not in ("auto", "must", "never"):
        raise BadInput(f'resume={resume!r}; allowed: "auto", "must", "never".')
    check_timeout(close_timeout)
    rank_zero = is_rank_zero()
    if id is None and is_one_of_several():
        raise BadInput(
            "There are several JAX processes, and open_run() got no id=. Pass the same "
            "id in every process, such as one from your configuration or the number "
            "that the scheduler gave the job, so that all mean one run."
        )
    where = resolve_root(root)
    given: dict[str, Any] = {"project": project, "name": name, "id": id, "group": group}
    if wandb is not None:
        given = _from_wandb(wandb, given)
        config = dict(wandb.config) if config is None else config
        tags = tuple(wandb.tags or ()) if not tuple(tags) else tags
    specs: list[str | Sink] = [sinks] if isinstance(sinks, str) else [*sinks]
    existing = _existing(where, given["id"], resume) if rank_zero else None
    first = existing.info.sinks if existing is not None else {}
    if not specs and tensorboard is None and wandb is None:
        specs = [*first_trackers(first)]
    settings = settings_of(specs, tensorboard, wandb, root=where, first=first)
    info = make_info(
        **given,
        tags=tags,
        config=config,
        job=job,
        job_source=job_source,
        sinks=settings,
        recipe=None if recipe is None else str(Path(recipe).absolute()),
        checkpoints=None if checkpoints is None else str(Path(checkpoints).absolute()),
    )
    if not rank_zero:
        return RunHandle(info, where, None)
    if existing is not None:
        # The sinks are those of this attempt; everything else is who the run is.
        info = dataclasses.replace(existing.info, sinks=settings)
    made = make_sinks(specs, tensorboard, wandb, info)
    for sink in made:
        go_on = getattr(sink, "go_on", None)
        if existing is not None and go_on is not None:
            # Judged before this attempt begins, which would make it running.
            go_on(backfill_of(existing, existing.state))
    engine = Engine(
        where,
        info,
        made,
        resumed_at=resumed_at,
        continued=existing is not None,
        strict=strict,
    )
    handle = RunHandle(engine.writer.info, where, engine, close_timeout=close_timeout)
    for sink in made:
        if isinstance(sink, WandbSink):
            sink.accompany(
                flush=handle.flush, close=handle.close, undrawn=engine.drawer.undrawn
            )
    return handle


def _from_wandb(wandb: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Take from a W&B run what the caller did not give."""
    taken = {
        "project": wandb.project if given["project"] == "default" else given["project"],
        "name": given["name"] or wandb.name,
        "id": given["id"] or wandb.id,
        "group": given["group"] or wandb.group or None,
    }
    return {**taken, "project": taken["project"] or "default"}


def _existing(root: Path, id: str | None, resume: Resume) -> Run | None:
    """Find the run that is continued, if there is one."""
    existing = None
    if id is not None and root.is_dir():
        runs = {run.id: run for run in Store(root).runs()}
        existing = runs.get(id)
    if existing is None:
        if resume == "must":
            raise NotFound(
                f"resume='must', but there is no run of id {id!r} in {root}. Pass the "
                "id of an existing run, or resume='auto'."
            )
        return None
    if resume == "never":
        raise BadInput(
            f"resume='never', but the run {id!r} exists in {root}. Choose another id, "
            "or resume='auto' to continue it."
        )
    if existing.state == "running":
        _log.warning(
            "The run %r is still being written by another handle or process. Both go "
            "on; close the other one, or give this run an id of its own.",
            id,
        )
    return existing
