"""What one item becomes in TensorBoard: the values of one event."""

from collections.abc import Iterable

from theseus_track.errors import BadInput
from theseus_track.records import FigureItem, Item, JsonItem, MetricsItem
from theseus_track.sinks.contract import Receipt
from theseus_track.sinks.json_parts import numbers
from theseus_track.sinks.tensorboard.events import (
    Value,
    image_value,
    scalar_value,
    text_value,
)
from theseus_track.sinks.tensorboard.tags import (
    figure_tag,
    leaf_tag,
    metric_tag,
    table_tag,
)
from theseus_track.sinks.tensorboard.text import show_json

__all__ = ["values_or_why"]

_LAST_STEP = 2**63 - 1
_LARGEST_PNG = 16 * 1024 * 1024


def values_or_why(item: Item, run_id: str) -> list[Value] | Receipt:
    """Return what an item becomes, or the receipt that says why nothing.

    Args:
        item: The item.
        run_id: The id of the run, for the command that shows what was cut.
    """
    if item.step > _LAST_STEP:
        return Receipt("failed", f"step {item.step} is above {_LAST_STEP}")
    if isinstance(item, FigureItem) and len(item.png) > _LARGEST_PNG:
        # A server reads images before the scalars behind them: one that is
        # out of all proportion would hold everything up.
        return Receipt("skipped", f"a PNG of over {_LARGEST_PNG} bytes")
    try:
        values = _values(item, run_id)
    except BadInput as error:
        return Receipt("failed", str(error))
    return values or Receipt("skipped", "there is nothing in it")


def _values(item: Item, run_id: str) -> list[Value]:
    match item:
        case FigureItem():
            return [image_value(figure_tag(item.name, item.part), item.png)]
        case JsonItem():
            return [_text(item, run_id), *_curves(item)]
        case MetricsItem():
            pairs = item.metrics.items()
            return [scalar_value(metric_tag(key), number) for key, number in pairs]


def _text(item: JsonItem, run_id: str) -> Value:
    markdown = show_json(item, run=run_id)
    return text_value(table_tag(item.name, item.part), markdown)


def _curves(item: JsonItem) -> Iterable[Value]:
    return [
        scalar_value(leaf_tag(item.name, item.part, path), number)
        for path, number in numbers(item.value)
    ]
