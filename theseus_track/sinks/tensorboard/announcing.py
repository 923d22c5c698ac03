"""What a delivery afterwards would change in TensorBoard; touches nothing."""

from collections.abc import Iterable
from pathlib import Path

from theseus_track.records import Item, MetricsItem
from theseus_track.sinks.contract import Changes, Receipt
from theseus_track.sinks.tensorboard.claim import RESULTS
from theseus_track.sinks.tensorboard.events import event_files, read_events
from theseus_track.sinks.tensorboard.values import values_or_why

__all__ = ["changes_of"]


def changes_of(
    directory: Path, items: Iterable[Item], *, run_id: str, running: bool
) -> Changes:
    """Count the events that are appended or replaced, and the tags that begin.

    Args:
        directory: The run's directory, which may not be there.
        items: What would be written, by step.
        run_id: The id of the run.
        running: Whether another process may be writing there, so that no file can be
            made anew.
    """
    shown = {place: _steps_of(place) for place in (directory, directory / RESULTS)}
    appended, replaced, begun, late = 0, 0, set(), set()
    for item in items:
        place = directory if isinstance(item, MetricsItem) else directory / RESULTS
        values = values_or_why(item, run_id)
        if isinstance(values, Receipt):
            continue
        steps = [shown[place].get(value.tag, set()) for value in values]
        again = all(item.step in of_tag for of_tag in steps) and not running
        replaced, appended = replaced + again, appended + (not again)
        begun |= {(place, value.tag) for value in values} - {
            (place, tag) for tag in shown[place]
        }
        if any(item.step <= max(of_tag, default=-1) for of_tag in steps):
            late.add(place)
    return Changes(
        where=str(directory),
        counts={
            "events appended": appended,
            "events replaced": replaced,
            "tags begun": len(begun),
        },
        notes=tuple(_late(place, running=running) for place in sorted(late)),
    )


def _steps_of(directory: Path) -> dict[str, set[int]]:
    """Return tag -> the steps at which it is shown."""
    steps: dict[str, set[int]] = {}
    for path in event_files(directory):
        for event in read_events(path):
            for value in event.summary.value:
                steps.setdefault(value.tag, set()).add(event.step)
    return steps


def _late(place: Path, *, running: bool) -> str:
    if running:
        return f"late steps are shown beside {place}, which somebody may be writing"
    return f"{place} is made anew, sorted by step"
