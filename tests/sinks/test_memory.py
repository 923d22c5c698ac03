import dataclasses

import pytest

from theseus_track.errors import DeliveryError
from theseus_track.records import FigureItem, Item, JsonItem, MetricsItem, RunInfo
from theseus_track.sinks import MemorySink, Sink
from theseus_track.sinks.conformance import Items, Shown, SinkConformance


class TestConformance(SinkConformance):
    @pytest.fixture(autouse=True)
    def _place(self) -> None:
        self.sinks: list[MemorySink] = []
        self.left: list[MemorySink] = []

    def make(self) -> MemorySink:
        if self.left:
            return self.left.pop()
        self.sinks.append(MemorySink())
        return self.sinks[-1]

    def abandon(self, sink: Sink) -> None:
        # As if its memory had outlived the process.
        assert isinstance(sink, MemorySink)
        self.left.append(sink)

    def shown(self) -> list[Shown]:
        return [one for sink in self.sinks for item in sink.items for one in show(item)]


def show(item: Item) -> list[Shown]:
    pairs: list[tuple[str, str, object]]
    if isinstance(item, FigureItem):
        pairs = [("figure", item.name, item.png)]
    elif isinstance(item, JsonItem):
        pairs = [("json", item.name, item.value)]
    else:
        pairs = [("metric", key, number) for key, number in item.metrics.items()]
    return [
        Shown(
            kind=kind,
            name=name,
            part="" if isinstance(item, MetricsItem) else item.part,
            step=item.step,
            wall_time=item.wall_time,
            content=content,
        )
        for kind, name, content in pairs
    ]


def test_writing_to_a_sink_that_is_not_open_says_so() -> None:
    with pytest.raises(DeliveryError, match="open"):
        MemorySink().write(Items().figure(1))


def test_an_item_of_another_part_is_another_item() -> None:
    sink = MemorySink()
    sink.open(_info())
    figure = Items().figure(1, part="a")
    assert isinstance(figure, FigureItem)
    sink.write(figure)
    sink.write(dataclasses.replace(figure, part="b"))
    assert sink.write(figure).reason == "was here already"
    assert [item.part for item in sink.items if isinstance(item, FigureItem)] == [
        "a",
        "b",
    ]


def _info() -> RunInfo:
    return RunInfo(project="tests", name="gpt", id="r1", created=0.0)
