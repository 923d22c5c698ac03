"""Gives a sink all that is to be shown of a run, as the ledger has it."""

from collections.abc import Callable, Iterator

from theseus_track.errors import LedgerError
from theseus_track.records import Item, MetricsRecord, ResultRecord
from theseus_track.sinks.contract import Backfill
from theseus_track.sinks.items import items_of
from theseus_track.store import Run

__all__ = ["backfill_of"]


def backfill_of(run: Run, state: str) -> Backfill:
    """Return what reads a run anew each time that it is asked.

    Args:
        run: The run.
        state: What it counts as, from the sink's point of view.
    """
    return Backfill(
        state=state,
        results=lambda: _every(run, ResultRecord),
        values=lambda: _every(run, ResultRecord, where=_holds_json),
        metrics=lambda: _every(run, MetricsRecord),
    )


def _every(
    run: Run,
    kind: type[ResultRecord | MetricsRecord],
    *,
    where: Callable[[ResultRecord | MetricsRecord], bool] = lambda _record: True,
) -> Iterator[Item]:
    for ref, record in run.refresh().deliverable():
        if isinstance(record, kind) and where(record):
            try:
                yield from items_of(run.dir, ref, record)
            except LedgerError:
                # Told where it is delivered; here it must not cost the others.
                continue


def _holds_json(record: ResultRecord | MetricsRecord) -> bool:
    parts = record.parts if isinstance(record, ResultRecord) else ()
    return any(part.kind == "json" for part in parts)
