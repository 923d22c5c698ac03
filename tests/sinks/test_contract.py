import pytest

from theseus_track.sinks import MemorySink, Receipt, Sink, TensorBoardSink


@pytest.mark.parametrize("status", ["lost", "", "Written"])
def test_a_receipt_has_one_of_four_statuses(status: str) -> None:
    with pytest.raises(ValueError, match=r"written, deferred, skipped, failed"):
        Receipt(status, "why")  # type: ignore[arg-type]


@pytest.mark.parametrize("status", ["skipped", "failed"])
def test_what_is_not_shown_needs_a_reason(status: str) -> None:
    with pytest.raises(ValueError, match=f"{status}.*reason"):
        Receipt(status)  # type: ignore[arg-type]


@pytest.mark.parametrize("sink", [MemorySink(), TensorBoardSink("logs")])
def test_our_sinks_are_sinks(sink: object) -> None:
    assert isinstance(sink, Sink)
