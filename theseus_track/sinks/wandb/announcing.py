"""What a delivery afterwards would change in W&B; begins and writes nothing."""

from collections.abc import Iterable, Iterator

from theseus_track.records import FigureItem, Item, JsonItem, MetricsItem
from theseus_track.sinks.contract import Changes
from theseus_track.sinks.json_parts import find_rectangle
from theseus_track.sinks.wandb.choice import Goal
from theseus_track.sinks.wandb.content import json_numbers, metrics_entry
from theseus_track.sinks.wandb.entry import Entry, Row
from theseus_track.sinks.wandb.keys import (
    RECORDS,
    RESULTS,
    figure_key,
    json_key,
    table_key,
)
from theseus_track.sinks.wandb.remote import find, is_online
from theseus_track.sinks.wandb.versions import TableVersions

__all__ = ["changes_of"]


def changes_of(goal: Goal, items: Iterable[Item], *, mirror: bool) -> Changes:
    """Count rows, definitions and summary keys, by the rules of `Appender` and `Log`.

    Args:
        goal: Where they go.
        items: What would be written, by step.
        mirror: Whether metrics are shown in a user's run, too.

    Raises:
        Exception: Whatever wandb raises when it cannot be asked.
    """
    rows, row, keys = 0, None, set()
    shown = (
        item
        for item in items
        if mirror or goal.metrics or not isinstance(item, MetricsItem)
    )
    for entry in _entries(shown, mirrored=not goal.metrics):
        if row is None or not row.fits(entry):
            rows, row = rows + 1, Row(entry.step)
        row.add(entry)
        keys |= {*entry.values, entry.steps.step, entry.steps.time, RECORDS}
    remote = goal.remote
    if remote is None and rows and is_online():
        remote = find(goal.address)
    again = len(remote.definitions) if remote is not None and rows else 0
    return Changes(
        where=f"{_HOW[goal.how]} {goal.address}",
        counts={
            "rows appended": rows,
            "definitions declared": len(keys),
            "definitions declared again": again,
            "summary keys set": len(keys),
        },
        notes=(goal.why,) if goal.why else (),
    )


_HOW = {"begin": "our run", "take up": "your run", "beside": "a companion run"}


def _entries(items: Iterable[Item], *, mirrored: bool) -> Iterator[Entry]:
    """Yield what each item becomes, without the media; tables as they are thinned."""
    tables = TableVersions()
    for item in items:
        match item:
            case FigureItem():
                yield _entry(item, figure_key(item.name, item.part))
            case JsonItem():
                yield _entry(item, json_key(item.name, item.part), *json_numbers(item))
                table = find_rectangle(item.value)
                if table is not None and table[1]:
                    entry = _entry(item, table_key(item.name, item.part))
                    if tables.choose(entry):
                        yield entry
            case MetricsItem():
                yield metrics_entry(item, mirrored=mirrored)
    yield from tables.take_last()


def _entry(item: Item, *keys: str) -> Entry:
    return Entry(item=item, steps=RESULTS, values=dict.fromkeys(keys))
