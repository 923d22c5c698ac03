"""What one item becomes in TensorBoard, and in which directory."""

from collections.abc import Sequence

from theseus_track.errors import BadInput
from theseus_track.records import FigureItem, Item, JsonItem, MetricsItem
from theseus_track.sinks.contract import Receipt
from theseus_track.sinks.json_parts import numbers
from theseus_track.sinks.seen import Seen
from theseus_track.sinks.tensorboard.claim import RESULTS, Claim
from theseus_track.sinks.tensorboard.events import (
    Value,
    image_value,
    scalar_value,
    text_value,
)
from theseus_track.sinks.tensorboard.subruns import SubRuns
from theseus_track.sinks.tensorboard.tags import (
    figure_tag,
    leaf_tag,
    metric_tag,
    table_tag,
)
from theseus_track.sinks.tensorboard.text import show_json

__all__ = ["Board"]

_LAST_STEP = 2**63 - 1
_LARGEST_PNG = 16 * 1024 * 1024


class Board:
    """The event files of one run that this process writes.

    One item is one event: all of it is shown or nothing.
    """

    def __init__(self, claim: Claim, run_id: str) -> None:
        """Start without touching the disk.

        Args:
            claim: The run's directory.
            run_id: The id of the run, for the command that shows what was cut.
        """
        run, sole = claim.directory, claim.sole
        self._run = run
        self._run_id = run_id
        self._seen = Seen()
        self._results = SubRuns(
            run, first=run / RESULTS if sole else None, later=f"{RESULTS}-replay-"
        )
        self._metrics = SubRuns(
            run, first=run if sole else None, later=f"{RESULTS}-metrics-"
        )

    def show(self, item: Item) -> Receipt:
        """Append one item.

        Raises:
            OSError: When the disk does not take it; nothing of it is left there.
        """
        if item in self._seen:
            return Receipt("written", "was here already")
        if item.step > _LAST_STEP:
            return Receipt("failed", f"step {item.step} is above {_LAST_STEP}")
        if isinstance(item, FigureItem) and len(item.png) > _LARGEST_PNG:
            # A server reads images before the scalars behind them: one that is
            # out of all proportion would hold everything up.
            return Receipt("skipped", f"a PNG of over {_LARGEST_PNG} bytes")
        try:
            values = self._values(item)
        except BadInput as error:
            return Receipt("failed", str(error))
        if not values:
            return Receipt("skipped", "there is nothing in it")
        receipt = self._append(item, values)
        self._seen.add(item)
        return receipt

    def sync(self) -> None:
        """Make what was written survive a loss of power."""
        self._results.sync()
        self._metrics.sync()

    def close(self) -> None:
        """Close the event files."""
        self._results.close()
        self._metrics.close()

    def _append(self, item: Item, values: Sequence[Value]) -> Receipt:
        is_metrics = isinstance(item, MetricsItem)
        subruns = self._metrics if is_metrics else self._results
        subrun = subruns.place([value.tag for value in values], item.step)
        subrun.write(values, step=item.step, wall_time=item.wall_time)
        if subrun.directory in (self._run, self._run / RESULTS):
            return Receipt("written")
        where = f"{self._run.name}/{subrun.directory.name}"
        return Receipt("written", f"shown in {where}: its step came late")

    def _values(self, item: Item) -> list[Value]:
        match item:
            case FigureItem():
                return [image_value(figure_tag(item.name, item.part), item.png)]
            case JsonItem():
                return [self._text(item), *_curves(item)]
            case MetricsItem():
                pairs = item.metrics.items()
                return [scalar_value(metric_tag(key), number) for key, number in pairs]

    def _text(self, item: JsonItem) -> Value:
        markdown = show_json(item, run=self._run_id)
        return text_value(table_tag(item.name, item.part), markdown)


def _curves(item: JsonItem) -> list[Value]:
    return [
        scalar_value(leaf_tag(item.name, item.part, path), number)
        for path, number in numbers(item.value)
    ]
