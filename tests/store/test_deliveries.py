"""What the marks of a sink say of each record."""

from pathlib import Path

from tests.store.ledgers import metrics, new_figure, writer
from theseus_track.records import Delivered, RecordRef
from theseus_track.store import Run
from theseus_track.store.deliveries import Deliveries


def test_marks_tell_what_is_settled(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        drawn, other = ledger.append(new_figure(1), new_figure(2))
        rows = ledger.append(*(metrics(step, loss=1.0) for step in range(4)))
        ledger.append(
            Delivered(sink="s", record=drawn, status="failed", reason="down"),
            Delivered(sink="s", record=drawn, status="written"),
            Delivered(sink="t", record=other, status="written"),
            Delivered(sink="s", record=rows[0], status="failed", reason="no"),
            Delivered(sink="s", record=rows[2], status="written", through=True),
            Delivered(sink="s", record=rows[1], status="written", through=True),
        )
    records = Run(ledger.run_dir).records()
    marks = Deliveries(records, "s")
    of = dict(records)
    settled = [marks.settled(ref, of[ref]) for ref in (drawn, other, *rows)]
    # The figures come before the rows in the journal, and have no mark in common.
    assert settled == [True, False, False, True, True, False]
    answer = marks.answer(rows[0], of[rows[0]])
    assert answer is not None
    assert answer.reason == "no"
    unknown = RecordRef(writer="gone", seq=0)
    assert marks.answer(unknown, of[rows[0]]) is None
