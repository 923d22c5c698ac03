from theseus_track.sinks.contract import Receipt
from theseus_track.sinks.report import SinkReport, Tally


def draw(tally: Tally, **given: object) -> SinkReport:
    settings = {"pending": 0, "closed": True, "blocked": "", "error": "", **given}
    return tally.report(**settings)  # type: ignore[arg-type]


def test_a_report_names_what_is_missing_and_why() -> None:
    tally = Tally("wandb")
    for receipt in (
        Receipt("written"),
        Receipt("failed", "too large"),
        Receipt("failed", "too large"),
        Receipt("skipped", "no tables"),
    ):
        tally.add(receipt)
    report = draw(tally, pending=3, error="write failed: no network")
    assert not report.complete
    assert str(report) == (
        "wandb: 1 delivered, 1 skipped, 3 pending, 2 failed "
        "(too large (x2); no tables; write failed: no network)"
    )


def test_skipped_items_leave_a_report_complete() -> None:
    tally = Tally("wandb")
    tally.add(Receipt("skipped", "no tables"))
    assert draw(tally).complete
    assert not draw(tally, closed=False).complete


def test_the_number_of_reasons_is_bounded() -> None:
    tally = Tally("wandb")
    for number in range(1000):
        tally.add(Receipt("failed", f"item {number}"))
    assert len(draw(tally).reasons) == 10
    assert draw(tally).failed == 1000
