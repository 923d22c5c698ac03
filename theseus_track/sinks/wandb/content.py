"""What one item becomes in W&B."""

from theseus_track.records import FigureItem, JsonItem, MetricsItem
from theseus_track.sinks.json_parts import find_rectangle, numbers
from theseus_track.sinks.wandb.entry import Entry
from theseus_track.sinks.wandb.keys import (
    METRICS,
    RESULTS,
    figure_key,
    json_key,
    leaf_key,
    metric_key,
    mirrored_key,
    table_key,
)
from theseus_track.sinks.wandb.media import html_of, image_of, table_of

__all__ = [
    "figure_entry",
    "json_entry",
    "json_numbers",
    "metrics_entry",
    "metrics_numbers",
    "table_entry",
]


def figure_entry(item: FigureItem) -> Entry:
    """Return a figure.

    Raises:
        BadInput: When its pixels cannot be shown.
    """
    part = f" ({item.part})" if item.part else ""
    image = image_of(item.png, item.caption + part)
    key = figure_key(item.name, item.part)
    return Entry(item=item, steps=RESULTS, values={key: image})


def json_entry(item: JsonItem, *, run: str) -> Entry:
    """Return a JSON value as a whole, and its numbers.

    Args:
        item: The value.
        run: The id of its run.
    """
    whole = {json_key(item.name, item.part): html_of(item, run=run)}
    return Entry(item=item, steps=RESULTS, values={**json_numbers(item), **whole})


def json_numbers(item: JsonItem) -> dict[str, float]:
    """Return the numbers of a JSON value, by their keys."""
    return {
        leaf_key(item.name, item.part, path): number
        for path, number in numbers(item.value)
    }


def table_entry(item: JsonItem) -> Entry | None:
    """Return the table in a JSON value, if there is one."""
    table = find_rectangle(item.value)
    if table is None or not table[1]:
        return None
    key = table_key(item.name, item.part)
    return Entry(item=item, steps=RESULTS, values={key: table_of(table)})


def metrics_entry(item: MetricsItem, *, mirrored: bool) -> Entry:
    """Return a row of metrics.

    Args:
        item: The row.
        mirrored: Whether the run is the user's, which may have such keys itself.
    """
    values = metrics_numbers(item, mirrored=mirrored)
    return Entry(item=item, steps=METRICS, values=values)


def metrics_numbers(item: MetricsItem, *, mirrored: bool) -> dict[str, float]:
    """Return the numbers of a row of metrics, by their keys."""
    key_of = mirrored_key if mirrored else metric_key
    return {key_of(name): float(number) for name, number in item.metrics.items()}
