"""The suite itself: it must fail the faults that it exists for."""

import pytest

from theseus_track.records import FigureItem, Item, MetricsItem
from theseus_track.sinks import MemorySink, Receipt
from theseus_track.sinks.conformance import Items, Shown, SinkConformance


class DropsLate(MemorySink):
    """Says that it wrote a late step, and does not."""

    def write(self, item: Item) -> Receipt:
        if self.items and item.step < self.items[-1].step:
            return Receipt("written")
        return super().write(item)


class WritesTwice(MemorySink):
    """Keeps what it is given each time."""

    def write(self, item: Item) -> Receipt:
        self.items.append(item)
        return Receipt("written")


class LosesTheLast(MemorySink):
    """Says that it wrote what it only writes when it is closed."""

    def write(self, item: Item) -> Receipt:
        self.waiting = [*getattr(self, "waiting", []), item]
        return Receipt("written")

    def flush(self, _timeout: float) -> None:
        self.items += [item for item in self.waiting if item not in self.items]

    def close(self, timeout: float) -> None:
        self.flush(timeout)
        super().close(timeout)


class ForgetsTheTime(MemorySink):
    """Shows everything at the time of its delivery."""


class MergesNames(MemorySink):
    """Replaces odd characters in names."""


class Suite(SinkConformance):
    def __init__(self, cls: type[MemorySink]) -> None:
        self.cls = cls
        self.sinks: list[MemorySink] = []

    def make(self) -> MemorySink:
        self.sinks.append(self.cls())
        return self.sinks[-1]

    def shown(self) -> list[Shown]:
        return [self.show(item) for sink in self.sinks for item in sink.items]

    def show(self, item: Item) -> Shown:
        assert not isinstance(item, MetricsItem)
        figure = isinstance(item, FigureItem)
        merges = self.cls is MergesNames
        return Shown(
            kind="figure" if figure else "json",
            name=item.name.replace(" ", "_") if merges else item.name,
            part=item.part,
            step=item.step,
            wall_time=0.0 if self.cls is ForgetsTheTime else item.wall_time,
            content=item.png if isinstance(item, FigureItem) else item.value,
        )


def test_a_good_sink_passes() -> None:
    Suite(MemorySink).test_late_steps()
    Suite(MemorySink).test_an_item_whose_write_raised_is_shown_once()


@pytest.mark.parametrize(
    ("cls", "case", "message"),
    [
        (DropsLate, "test_late_steps", "not shown"),
        (WritesTwice, "test_an_item_whose_write_raised_is_shown_once", "shown"),
        (MemorySink, "test_a_crash_between_any_two_writes", "more than once"),
        (LosesTheLast, "test_a_crash_between_any_two_writes", "not shown"),
        (ForgetsTheTime, "test_early_steps", "given"),
    ],
)
def test_a_bad_sink_fails(cls: type[MemorySink], case: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        getattr(Suite(cls), case)()


def test_merged_names_are_found() -> None:
    suite = Suite(MergesNames)
    with pytest.raises(AssertionError, match="not shown"):
        suite._expect([Items().figure(1, "my gpt")])
