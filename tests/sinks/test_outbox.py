"""Marks: one for each record, one in common for rows below which nothing is out."""

import pytest

from theseus_track.errors import LedgerError
from theseus_track.records import Delivered, FigureItem, MetricsItem, RecordRef
from theseus_track.sinks import Receipt
from theseus_track.sinks.outbox import Outbox

WRITTEN = Receipt("written")


def ref(seq: int, name: str = "w") -> RecordRef:
    return RecordRef(writer=name, seq=seq)


def row(seq: int, name: str = "w") -> MetricsItem:
    return MetricsItem(ref=ref(seq, name), step=seq, wall_time=0.0, metrics={})


def figure(seq: int, part: str) -> FigureItem:
    return FigureItem(
        ref=ref(seq),
        name="a",
        part=part,
        step=seq,
        wall_time=0.0,
        png=b"",
        pdf=b"",
        caption="",
    )


@pytest.fixture
def marks() -> list[Delivered]:
    """What was marked."""
    return []


@pytest.fixture
def outbox(marks: list[Delivered]) -> Outbox:
    """An outbox whose marks are kept."""
    return Outbox("s", marks.append)


def told(marks: list[Delivered]) -> list[tuple[str, int, str, bool]]:
    return [(m.record.writer, m.record.seq, m.status, m.through) for m in marks]


def test_a_record_is_as_delivered_as_its_worst_part(
    outbox: Outbox, marks: list[Delivered]
) -> None:
    outbox.expect(ref(3), 3, ["a", "b", "c"], row=False)
    outbox.settle(figure(3, "a"), WRITTEN)
    outbox.settle(figure(3, "b"), Receipt("failed", "no"))
    assert marks == []
    outbox.settle(figure(3, "c"), Receipt("skipped", "big"))
    assert told(marks) == [("w", 3, "failed", False)]
    assert marks[0].reason == "no"


def test_rows_are_marked_up_to_the_first_that_is_out(
    outbox: Outbox, marks: list[Delivered]
) -> None:
    for seq in range(1, 7):
        outbox.expect(ref(seq), seq, [""], row=True)
    # A lower step overtakes in the queue: its line may be a later one.
    for seq in (1, 2, 5):
        outbox.settle(row(seq), WRITTEN)
    outbox.mark_rows()
    assert told(marks) == [("w", 2, "written", True)]
    outbox.mark_rows()
    assert len(marks) == 1
    for seq in (3, 4):
        outbox.settle(row(seq), WRITTEN)
    outbox.mark_rows()
    assert told(marks)[1:] == [("w", 5, "written", True)]


def test_results_do_not_hold_rows_back_and_writers_are_apart(
    outbox: Outbox, marks: list[Delivered]
) -> None:
    outbox.expect(ref(1), 1, ["a"], row=False)
    outbox.expect(ref(2), 2, [""], row=True)
    outbox.expect(ref(1, "v"), 1, [""], row=True)
    outbox.expect(ref(2, "v"), 2, [""], row=True)
    outbox.settle(row(2), WRITTEN)
    outbox.settle(row(2, "v"), WRITTEN)
    outbox.mark_rows()
    assert told(marks) == [("w", 2, "written", True), ("v", 0, "written", True)]


def test_rows_that_a_sink_does_not_take_have_one_mark_in_common(
    outbox: Outbox, marks: list[Delivered]
) -> None:
    for seq in range(1, 6):
        outbox.expect(ref(seq), seq, [""], row=True)
    for seq in (1, 2, 3, 5):
        outbox.settle(row(seq), Receipt("skipped", "not taken"))
    outbox.settle(row(4), WRITTEN)
    outbox.mark_rows()
    outbox.mark_rows()
    assert [(m.record.seq, m.status, m.reason, m.through) for m in marks] == [
        (4, "written", "", False),
        (5, "skipped", "not taken", True),
    ]


def test_a_row_that_failed_has_a_mark_of_its_own(
    outbox: Outbox, marks: list[Delivered]
) -> None:
    outbox.expect(ref(1), 1, [""], row=True)
    outbox.settle(row(1), Receipt("failed", "no"))
    outbox.expect(ref(1), 1, [""], row=False)
    outbox.settle(row(1), WRITTEN)
    assert told(marks) == [("w", 1, "failed", False), ("w", 1, "written", False)]


def test_refused_records_come_in_step_order(outbox: Outbox) -> None:
    for seq, step in ((1, 30), (2, 10), (3, 20)):
        outbox.expect(ref(seq), step, [""], row=False)
        outbox.refuse(ref(seq))
    outbox.settle(row(3), WRITTEN)
    assert [r.seq for r in outbox.refused()] == [2, 1]


def test_a_mark_that_cannot_be_written_is_no_failure() -> None:
    def full(_mark: Delivered) -> None:
        raise LedgerError("the disk is full")

    outbox = Outbox("s", full)
    outbox.expect(ref(1), 1, ["a"], row=False)
    outbox.settle(figure(1, "a"), WRITTEN)
    assert outbox.refused() == []
