import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from theseus_track.records import FigureItem, MetricsItem, RecordRef
from theseus_track.sinks.conformance import Items
from theseus_track.sinks.seen import Seen


def row(writer: str, seq: int) -> MetricsItem:
    ref = RecordRef(writer=writer, seq=seq)
    return MetricsItem(ref=ref, step=0, wall_time=0.0, metrics={})


refs = st.tuples(st.sampled_from("ab"), st.integers(0, 300))


@given(st.lists(refs), refs)
def test_a_row_is_seen_when_it_was_added(
    added: list[tuple[str, int]], asked: tuple[str, int]
) -> None:
    seen = Seen()
    for writer, seq in added:
        seen.add(row(writer, seq))
    assert (row(*asked) in seen) == (asked in added)


def test_parts_and_kinds_of_one_record_are_kept_apart() -> None:
    seen, items = Seen(), Items()
    figure = items.figure(1, part="a")
    assert isinstance(figure, FigureItem)
    seen.add(figure)
    assert figure in seen
    assert dataclasses.replace(figure, part="b") not in seen
    value = dataclasses.replace(items.json(1, 1, part="a"), ref=figure.ref)
    assert value not in seen
