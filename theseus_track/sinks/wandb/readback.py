"""Which records a W&B run shows already, asked from its server."""

import logging
from collections.abc import Iterable
from typing import Any

from theseus_track.records import Item
from theseus_track.sinks.seen import Lines
from theseus_track.sinks.wandb.entry import record_of
from theseus_track.sinks.wandb.keys import RECORDS

__all__ = ["Told", "told_by"]

_log = logging.getLogger(__name__)
# Seconds that the server may take.
_ANSWERS = 15
# Rows are asked for by ranges of W&B's own step, most of which may be empty.
_PAGE = 1000
_MOST_PAGES = 100


class Told:
    """The records that the rows of a run name; a million of them take 125 KB."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        """Take what `theseus/records` says in each row.

        Args:
            texts: Records, with blanks between them.
        """
        self._lines = Lines()
        self._others: set[str] = set()
        for record in (record for text in texts for record in text.split()):
            writer, _, seq = record.rpartition(":")
            if writer and ":" not in writer and seq.isdecimal():
                self._lines.add(writer, int(seq))
            else:
                self._others.add(record)

    def __contains__(self, item: Item) -> bool:
        record = record_of(item)
        here = self._lines.has(item.ref.writer, item.ref.seq)
        whole = record == f"{item.ref.writer}:{item.ref.seq}"
        return (whole and here) or record in self._others


def told_by(run: Any) -> Told:  # a wandb.Run
    """Read back which records a run shows that was just taken up.

    Needs a server of W&B that gives out the rows of a run (wandb 0.31 calls it
    `scan_history`). Where it does not, that is logged, nothing counts as shown, and
    delivery is at least once.
    """
    if not run.resumed:
        return Told()
    import wandb

    try:
        api = wandb.Api(timeout=_ANSWERS)
        remote = api.run(f"{run.entity}/{run.project}/{run.id}")
        page = max(_PAGE, remote.lastHistoryStep // _MOST_PAGES + 1)
        # Without the cache: it would keep what was shown at an earlier time.
        rows = remote.scan_history(keys=[RECORDS], page_size=page, use_cache=False)
        return Told([str(row[RECORDS]) for row in rows])
    # Its public API raises what its service, its transport and its reader raise.
    except Exception as error:  # noqa: BLE001
        _log.warning(
            "W&B did not tell what the run %s shows already, so that some of it may "
            "come twice: %s",
            run.id,
            error,
        )
        return Told()
