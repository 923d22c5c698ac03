"""Which items a W&B run shows, by what its rows say."""

import dataclasses

from theseus_track.records import FigureItem, RecordRef
from theseus_track.sinks.conformance import Items
from theseus_track.sinks.wandb.entry import record_of
from theseus_track.sinks.wandb.readback import Told


def figure(part: str, writer: str = "w", seq: int = 1) -> FigureItem:
    item = Items().figure(1, part=part)
    assert isinstance(item, FigureItem)
    return dataclasses.replace(item, ref=RecordRef(writer=writer, seq=seq))


def test_a_row_tells_of_its_records_and_of_no_other() -> None:
    row = Items("v").metrics(3, {"loss": 1.0})
    shown = [row, figure("a b"), figure("", seq=7)]
    told = Told([" ".join(map(record_of, shown[:2])), record_of(shown[2])])
    assert all(item in told for item in shown)
    others = [figure("a"), figure(""), figure("a", seq=7), figure("a b", writer="v")]
    assert not any(item in told for item in others)


def test_what_was_written_by_another_program_is_no_record_of_ours() -> None:
    told = Told(["", "  ", "hello", "w:x", ":1", "a:b:1"])
    assert figure("") not in told
