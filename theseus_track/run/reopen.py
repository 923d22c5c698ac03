"""reopen_run: add to a run that exists, without being an attempt of its training."""

import os
from collections.abc import Iterable
from typing import Literal

from theseus_track.run.engine import Engine
from theseus_track.run.handle import RunHandle
from theseus_track.run.rank import is_rank_zero
from theseus_track.sinks import Sink
from theseus_track.store import Store

__all__ = ["reopen_run"]


def reopen_run(
    root: str | os.PathLike[str] | None,
    name: str,
    *,
    purpose: Literal["replay", "replot"] = "replay",
    sinks: Iterable[Sink] = (),
    strict: bool = False,
) -> RunHandle:
    """Open an existing run to add what is computed or drawn afterwards.

    Args:
        root: Where the ledger is: this, else `$THESEUS_ROOT`, else `./results`.
        name: Its id, its name (the newest of that name), or the beginning of one.
        purpose: What is added. Unlike a resumed training, neither supersedes
            anything but the older result of the same analysis and step.
        sinks: Trackers that show it at once; usually none, since `sync` delivers
            from the ledger in step order.
        strict: Raise faults at the next call.

    Returns:
        A handle to log to, with `source=` and `wall_time=` of what is replayed.

    Raises:
        NotFound: When there is no such run, or several.
        LedgerError: When the root cannot be written.
    """
    store = Store(root)
    found = store.run(name)
    info, probes = found.info, {p.name: p.hash for p in found.probes.values()}
    if not is_rank_zero():
        return RunHandle(info, store.root, None)
    engine = Engine(
        store.root,
        info,
        tuple(sinks),
        resumed_at=None,
        continued=True,
        strict=strict,
        purpose=purpose,
    )
    return RunHandle(info, store.root, engine, probes)
