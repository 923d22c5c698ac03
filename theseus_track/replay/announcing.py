"""What a replay will change in the trackers, said before anything is computed."""

import dataclasses
import io
from collections.abc import Iterator, Mapping, Sequence

from PIL import Image

from theseus_track.records import FigureItem, Item, JsonItem, RecordRef
from theseus_track.replay.plan import ReplayPlan
from theseus_track.sinks import Changes, announce
from theseus_track.sinks.items import items_of
from theseus_track.store import Run

__all__ = ["announcement"]


def announcement(
    plan: ReplayPlan, sinks: Sequence[str], *, companion: bool = False
) -> dict[str, str]:
    """Say what a replay and its delivery will change in each tracker.

    An analysis that was drawn before is taken to draw as many figures and numbers as
    then; one that never was, one figure.

    Args:
        plan: What is computed.
        sinks: Where it is delivered, as for `sync`.
        companion: As for `sync`.

    Returns:
        What `sync` calls a sink -> what is changed there; no sink that stays as it is.
    """
    run = plan.target.run
    if not sinks or (run is None and not plan.due):
        return {}
    if run is None:
        return dict.fromkeys(sinks, "the results of a new run, nothing deleted")
    due = dict.fromkeys(name for planned in plan.due for name in planned.due)
    like = {name: _as_last_drawn(run, name) for name in due}
    changes = announce(run, _planned(plan, like), to=sinks, companion=companion)
    new = [f"{name} counts as one figure" for name, items in like.items() if not items]
    return {
        sink: "; ".join([str(change), *new])
        for sink, change in changes.items()
        if not isinstance(change, Changes) or any(change.counts.values())
    }


def _as_last_drawn(run: Run, name: str) -> list[Item]:
    """Return what an analysis was last shown as; nothing where it never was."""
    for result in reversed(run.results(name)):
        record = result.result_record
        if record is not None and record.parts:
            return items_of(run.dir, result.ref, record)
    return []


def _planned(
    plan: ReplayPlan, like: Mapping[str, Sequence[Item]]
) -> Iterator[FigureItem | JsonItem]:
    """Yield what the results to be computed will be shown as, by step."""
    works = ((one, name) for one in plan.due for name in one.due)
    for seq, (one, name) in enumerate(works):
        for item in like[name] or [_figure(name)]:
            assert isinstance(item, FigureItem | JsonItem)  # of a result
            yield dataclasses.replace(
                item,
                ref=RecordRef(writer="planned", seq=seq),
                step=one.step,
                wall_time=one.checkpoint.wall_time,
            )


def _figure(name: str) -> FigureItem:
    pixel = io.BytesIO()
    Image.new("L", (1, 1)).save(pixel, "png")
    return FigureItem(
        ref=RecordRef(writer="planned", seq=0),
        name=name,
        part="",
        step=0,
        wall_time=0.0,
        png=pixel.getvalue(),
        pdf=b"",
        caption="",
    )
