"""sync: from the ledger alone, in step order, once; what is missing is told."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.store.ledgers import (
    evaluate,
    metrics,
    new_figure,
    run_info,
    table_part,
    writer,
)
from theseus_track.errors import BadInput, DeliveryError, NotFound
from theseus_track.records import Delivered, FigureItem, Item, MetricsItem, RecordRef
from theseus_track.sinks import (
    Backfill,
    MemorySink,
    Receipt,
    SyncReport,
    sync,
    syncing,
)
from theseus_track.store import LedgerWriter, Run, Store
from theseus_track.store.claim import Claim


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> MemorySink:
    """A tracker that outlives each sync, as a server does."""
    return installed(monkeypatch, MemorySink())


def installed(monkeypatch: pytest.MonkeyPatch, sink: Any) -> Any:
    monkeypatch.setattr(syncing, "open_sink", lambda _spec, _info: sink)
    return sink


def shown(sink: MemorySink) -> list[tuple[int, str]]:
    return [
        (item.step, "" if isinstance(item, MetricsItem) else item.name)
        for item in sink.items
    ]


def deliver(root: Path, **options: Any) -> SyncReport:
    return sync("r1", root=root, to=["memory"], **options)


def journals(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in (root / "runs").rglob("*.jsonl")}


def test_everything_is_delivered_in_step_order(
    tmp_path: Path, sink: MemorySink
) -> None:
    with writer(tmp_path) as ledger:
        for step in (30, 10):
            evaluate(ledger, step)
            ledger.append(metrics(step, loss=float(step)))
    with writer(tmp_path, purpose="replay") as ledger:
        evaluate(ledger, 20)
    report = deliver(tmp_path)
    assert shown(sink) == [
        (10, ""),
        (10, "activations"),
        (20, "activations"),
        (30, ""),
        (30, "activations"),
    ]
    (balance,) = report.sinks
    assert (balance.delivered, balance.pending, balance.failed) == (5, 0, 0)
    assert report.complete
    assert isinstance(sink.items[1], FigureItem)
    assert sink.items[1].wall_time == 110.0
    assert "step 10" in sink.items[1].caption


def test_doing_it_twice_changes_nothing(tmp_path: Path, sink: MemorySink) -> None:
    with writer(tmp_path) as ledger:
        evaluate(ledger, 10)
        ledger.append(metrics(10, loss=1.0), metrics(20, loss=1.0))
    deliver(tmp_path)
    before, count = journals(tmp_path), len(sink.items)
    (balance,) = deliver(tmp_path).sinks
    assert (balance.delivered, balance.pending) == (0, 0)
    assert journals(tmp_path) == before
    assert len(sink.items) == count
    assert Store(tmp_path).run("r1").state == "finished"


def test_only_what_has_no_mark_is_delivered(tmp_path: Path, sink: MemorySink) -> None:
    with writer(tmp_path) as ledger:
        for step in (1, 2, 3):
            ledger.append(metrics(step, loss=1.0))
        (drawn,) = ledger.append(new_figure(1))
        (skipped,) = ledger.append(new_figure(2))
        (failed,) = ledger.append(new_figure(3))
        ledger.append(
            Delivered(sink="memory", record=drawn, status="written"),
            Delivered(sink="memory", record=skipped, status="skipped", reason="big"),
            Delivered(sink="memory", record=failed, status="failed", reason="down"),
            Delivered(sink="other", record=failed, status="written"),
            Delivered(
                sink="memory",
                record=RecordRef(writer=drawn.writer, seq=drawn.seq - 2),
                status="written",
                through=True,
            ),
        )
    deliver(tmp_path)
    assert shown(sink) == [(3, ""), (3, "activations")]


def test_a_new_tracker_and_one_that_lost_it_get_everything(
    tmp_path: Path, sink: MemorySink
) -> None:
    with writer(tmp_path) as ledger:
        evaluate(ledger, 10)
    deliver(tmp_path)
    sink.items.clear()
    sink._seen = type(sink._seen)()
    deliver(tmp_path)
    assert sink.items == []
    deliver(tmp_path, again=True)
    assert shown(sink) == [(10, "activations")]
    before = journals(tmp_path)
    sync("r1", root=tmp_path, to=["memory:elsewhere"])
    assert journals(tmp_path) != before


def test_the_newer_attempt_is_delivered(tmp_path: Path, sink: MemorySink) -> None:
    with writer(tmp_path) as ledger:
        for step in (120, 124):
            evaluate(ledger, step)
            ledger.append(metrics(step, loss=1.0))
    with writer(tmp_path, resumed_at=120) as ledger:
        evaluate(ledger, 120)
        ledger.append(metrics(120, loss=2.0))
    deliver(tmp_path)
    assert shown(sink) == [(120, ""), (120, "activations")]
    assert isinstance(sink.items[0], MetricsItem)
    assert sink.items[0].metrics == {"loss": 2.0}


class Refuses(MemorySink):
    """Refuses chosen steps, for good or by raising."""

    def __init__(self, *steps: int, raises: bool = False) -> None:
        super().__init__()
        self.steps = steps
        self.raises = raises

    def write(self, item: Item) -> Receipt:
        if item.step not in self.steps:
            return super().write(item)
        if self.raises:
            raise ConnectionError("the server is gone")
        return Receipt("failed", "no")


def test_what_failed_is_tried_again_and_marked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writer(tmp_path) as ledger:
        for step in (1, 2, 3):
            evaluate(ledger, step)
            ledger.append(metrics(step, loss=1.0))
    sink = installed(monkeypatch, Refuses(2))
    report = deliver(tmp_path)
    assert not report.complete
    assert str(report) == "memory: 4 delivered, 0 pending, 2 failed (no (x2))"
    before = journals(tmp_path)
    assert (
        str(deliver(tmp_path)) == "memory: 0 delivered, 0 pending, 2 failed (no (x2))"
    )
    # A refusal that was noted is not noted again.
    texts = journals(tmp_path)
    assert sum(t.count(b'"failed"') for t in texts.values()) == sum(
        t.count(b'"failed"') for t in before.values()
    )
    sink.steps = ()
    assert deliver(tmp_path).complete
    assert sorted(shown(sink)) == sorted(
        [(s, n) for s in (1, 2, 3) for n in ("", "activations")]
    )
    assert str(deliver(tmp_path)) == "memory: 0 delivered, 0 pending, 0 failed"


class Closed(MemorySink):
    """A tracker that cannot be reached."""

    def open(self, info: Any) -> None:
        raise DeliveryError("nobody is there")


@pytest.mark.slow  # waits between the tries
def test_a_tracker_that_cannot_be_reached_leaves_all_pending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writer(tmp_path) as ledger:
        for step in range(3):
            evaluate(ledger, step)
    installed(monkeypatch, Closed())
    (balance,) = deliver(tmp_path).sinks
    assert (balance.delivered, balance.pending, balance.failed) == (0, 3, 0)
    assert "nobody is there" in str(balance)
    sink = installed(monkeypatch, MemorySink())
    assert deliver(tmp_path).complete
    assert len(sink.items) == 3


def test_a_damaged_file_costs_itself_only(tmp_path: Path, sink: MemorySink) -> None:
    with writer(tmp_path) as ledger:
        evaluate(ledger, 1)
        ledger.append(new_figure(2, name="table", parts=(table_part('{"a": 1}'),)))
    (blob,) = (tmp_path / "runs" / "r1" / "blobs").rglob("*.json")
    blob.write_bytes(b"[]")
    (balance,) = deliver(tmp_path).sinks
    assert (balance.delivered, balance.pending, balance.failed) == (1, 0, 1)
    assert "damaged" in str(balance)


def test_a_running_training_delivers_for_itself(
    tmp_path: Path, sink: MemorySink
) -> None:
    with writer(tmp_path) as ledger:
        evaluate(ledger, 10)
        with writer(tmp_path, purpose="replay") as replayed:
            evaluate(replayed, 5)
        run = Store(tmp_path).run("r1")
        object.__setattr__(run.info, "sinks", {"memory": {}})
        sync(run, to=["memory"])
        assert shown(sink) == [(5, "activations")]
    run.refresh()
    sync(run, to=["memory"])
    assert shown(sink) == [(5, "activations"), (10, "activations")]


def test_a_run_that_only_looks_running_may_be_taken_for_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = installed(monkeypatch, Asks())
    with writer(tmp_path) as ledger:
        evaluate(ledger, 10)
        run = Store(tmp_path).run("r1")
        object.__setattr__(run.info, "sinks", {"memory": {}})
        assert sync(run).sinks[0].delivered == 0
        report = sync(run, assume_stopped=True)
    assert report.notes == ("memory: stopped: [10] []",)
    assert shown(sink) == [(10, "activations")]


def test_where_it_was_delivered_to_is_remembered(
    tmp_path: Path, sink: MemorySink
) -> None:
    with writer(tmp_path) as ledger:
        evaluate(ledger, 10)
    sync("r1", root=tmp_path, to=["memory", "memory:b"])
    with writer(tmp_path, purpose="replay") as ledger:
        evaluate(ledger, 20)
    report = sync("r1", root=tmp_path)
    assert [(s.sink, s.delivered) for s in report.sinks] == [
        ("memory", 1),
        ("memory:b", 1),
    ]


def test_a_sink_without_a_name_of_its_own_is_told(tmp_path: Path) -> None:
    with LedgerWriter.create(tmp_path, run_info(sinks={"mine": {}})) as ledger:
        evaluate(ledger, 10)
    (balance,) = sync("r1", root=tmp_path).sinks
    assert (balance.sink, balance.pending) == ("mine", 1)
    assert "Unknown sink 'mine'" in str(balance)


def test_the_sinks_of_the_run_are_the_default(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        evaluate(ledger, 10)
    with pytest.raises(BadInput, match="without a tracker"):
        sync("r1", root=tmp_path)
    with pytest.raises(BadInput, match="memori"):
        sync("r1", root=tmp_path, to=["memori"])
    with pytest.raises(NotFound, match="r7"):
        sync("r7", root=tmp_path, to=["memory"])


def test_one_sync_of_a_sink_at_a_time(tmp_path: Path, sink: MemorySink) -> None:
    with writer(tmp_path) as ledger:
        evaluate(ledger, 10)
    with Claim.take(tmp_path / "runs" / "r1", "sync-memory"):
        report = deliver(tmp_path)
    assert not report.complete
    assert report.sinks[0].pending == 1
    assert "Another process is at work" in str(report)
    assert deliver(tmp_path).complete


class Asks(MemorySink):
    """Wants to know what the ledger has."""

    def prepare(self, backfill: Backfill) -> None:
        self.backfill = backfill

    def notes(self) -> Sequence[str]:
        results = [item.step for item in self.backfill.results()]
        rows = [item.step for item in self.backfill.metrics()]
        return [f"{self.backfill.state}: {results} {rows}"]


def test_a_sink_may_ask_for_the_whole_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writer(tmp_path) as ledger:
        for step in (2, 1):
            evaluate(ledger, step)
            ledger.append(metrics(step, loss=1.0))
    installed(monkeypatch, Asks())
    report = deliver(tmp_path)
    assert report.notes == ("memory: finished: [1, 2] [1, 2]",)
    assert str(report).splitlines()[1] == report.notes[0]


def test_more_than_fits_into_memory(
    tmp_path: Path, sink: MemorySink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("theseus_track.sinks.delivery._CAPACITY", 1)
    with writer(tmp_path) as ledger:
        for step in range(20):
            evaluate(ledger, step)
    tells: list[tuple[int, int]] = []
    assert deliver(tmp_path, tell=lambda *counts: tells.append(counts)).complete
    assert [step for step, _ in shown(sink)] == [*range(20)]
    assert tells[-1] == (20, 20)


def test_a_run_that_is_given_is_read_anew(tmp_path: Path, sink: MemorySink) -> None:
    with writer(tmp_path) as ledger:
        run = Run(ledger.run_dir)
        evaluate(ledger, 10)
    assert sync(run, to=["memory"]).complete
    assert shown(sink) == [(10, "activations")]
