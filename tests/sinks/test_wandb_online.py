"""Results sent to a W&B server: what it has at the end, and what faults cost."""

from pathlib import Path
from typing import Any

import pytest
import wandb

from tests.sinks.wandb_backend import Backend
from tests.sinks.wandb_backend import backend as backend
from tests.sinks.wandb_place import abandon
from tests.sinks.wandb_user import STYLES, Style, of_the_user
from theseus_track import open_run
from theseus_track.records import RunInfo
from theseus_track.sinks import Delivery, RetryPolicy, Sink, WandbSink, sync
from theseus_track.sinks.conformance import Items, Shown, SinkConformance

FIGURE = "analysis/activations"
MEAN = "analysis/entropy/mean"


def run_info(run_id: str = "r1") -> RunInfo:
    return RunInfo(project="tests", name="gpt", id=run_id, created=0.0)


@pytest.mark.slow  # begins and finishes two dozen runs, each sent to a server
class TestConformance(SinkConformance):
    """Runs of ours, read back from their server: rows, files and names."""

    @pytest.fixture(autouse=True)
    def _place(self, backend: Backend, tmp_path: Path) -> None:
        self.backend = backend
        self.directory = tmp_path / "shown"

    def make(self) -> WandbSink:
        return WandbSink()

    def abandon(self, sink: Sink) -> None:
        abandon(sink)

    def shown(self) -> list[Shown]:
        return self.backend.shown(self.directory)


def begin(**settings: Any) -> Any:
    return wandb.init(project="mine", reinit="create_new", **settings)


@pytest.mark.slow  # two runs, each sent to a server
@pytest.mark.parametrize("style", STYLES)
def test_late_results_cost_the_user_nothing_and_lose_nothing(
    backend: Backend, style: Style
) -> None:
    plain, ridden = begin(id="plain"), begin(id="ridden")
    ridden.define_metric("loss", step_metric="train/step")
    plain.define_metric("loss", step_metric="train/step")
    delivery, items = Delivery(WandbSink(ridden), run_info()), Items()
    for step in range(60):
        style(plain, step)
        style(ridden, step)
        if step % 10 == 5:
            # Finished five steps after it was asked for.
            delivery.offer(items.figure(step - 5))
            delivery.offer(items.json(step - 5, {"mean": float(step)}))
    report = delivery.close(30.0)
    plain.finish()
    ridden.finish()
    assert (report.delivered, report.complete) == (12, True), str(report)
    found = backend.runs()
    assert of_the_user(found["ridden"].rows) == of_the_user(found["plain"].rows)
    steps = list(range(0, 60, 10))
    assert sorted(step for step, _ in found["ridden"].with_step(FIGURE)) == steps
    assert sorted(found["ridden"].with_step(MEAN)) == [(s, s + 5.0) for s in steps]
    # Each key by its own name: of two globs that match, W&B takes any.
    assert found["ridden"].steps_of == {
        "loss": "train/step",
        **dict.fromkeys([FIGURE, MEAN, "analysis/entropy/json"], "theseus/step"),
    }


def test_our_own_run_has_the_training_step_as_its_own(
    backend: Backend, tmp_path: Path
) -> None:
    with open_run(tmp_path / "results", project="p", id="o1", sinks=["wandb"]) as run:
        for step in range(0, 50, 10):
            run.log_metrics({"loss": 1.0 / (1 + step)}, step=step)
            run.log_result("facts", {"step": step}, step=step)
    found = backend.runs()["o1"]
    assert backend.state("o1") == "finished"
    assert [row["_step"] for row in found.rows] == [0, 10, 20, 30, 40]
    assert found.with_step("analysis/facts/step", "_step") == [
        (step, step) for step in range(0, 50, 10)
    ]
    records = [row["theseus/records"].split() for row in found.rows]
    assert len({one for row in records for one in row}) == 10


def test_what_a_training_does_again_comes_last_and_is_the_summary(
    backend: Backend, tmp_path: Path
) -> None:
    for attempt, steps in ((1.0, (110, 120, 124)), (2.0, (120, 121))):
        with open_run(tmp_path, id="o1", sinks=["wandb"]) as run:
            for step in steps:
                run.log_metrics({"loss": attempt}, step=step)
                run.log_result("facts", {"n": attempt}, step=step)
    (found,) = backend.runs().values()
    for key, x in (
        ("loss", "theseus/train_step"),
        ("analysis/facts/n", "theseus/step"),
    ):
        newest = dict(found.with_step(key, x))
        assert newest == {110: 1.0, 120: 2.0, 121: 2.0, 124: 1.0}
        assert found.summary[key] == 2.0
    assert found.steps_of["loss"] == "theseus/train_step"


@pytest.mark.parametrize("first", ["wandb.init", "open_run"])
def test_either_may_begin_first(backend: Backend, tmp_path: Path, first: str) -> None:
    mine = begin(id="mine") if first == "wandb.init" else None
    handle = open_run(tmp_path / "results", wandb=mine, sinks=["wandb"])
    mine = mine or wandb.init(project="mine", id="mine")
    for step in range(3):
        mine.log({"loss": 1.0})
        handle.log_result("facts", {"n": step}, step=step)
    mine.finish()
    assert handle.close().complete
    (found,) = backend.runs().values()
    assert sorted(found.with_step("analysis/facts/n")) == [(0, 0), (1, 1), (2, 2)]
    assert len(found.column("loss")) == 3


def test_a_server_that_is_short_of_breath_gets_everything(backend: Backend) -> None:
    asked = [0]

    def every_third_is_too_many(what: str) -> int | None:
        asked[0] += what.endswith("file_stream")
        return 429 if what.endswith("file_stream") and asked[0] % 3 == 1 else None

    backend.fault = every_third_is_too_many
    mine = begin(id="mine")
    delivery, items = Delivery(WandbSink(mine), run_info()), Items()
    for step in range(10):
        mine.log({"loss": float(step)})
        delivery.offer(items.figure(step))
    assert delivery.close(30.0).complete
    mine.finish()
    assert backend.refused
    found = backend.runs()["mine"]
    assert sorted(step for step, _ in found.with_step(FIGURE)) == list(range(10))
    assert found.column("loss") == [float(step) for step in range(10)]


def test_a_server_that_is_away_is_named_and_caught_up_with(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = RetryPolicy(attempts=1, first_wait=0.0, pause=0.0)
    monkeypatch.setattr("theseus_track.sinks.delivery.RetryPolicy", lambda: impatient)
    backend.fault = lambda what: 404 if what == "Run" else None
    handle = open_run(tmp_path / "results", id="o1", sinks=["wandb"])
    for step in range(5):
        handle.log_result("facts", {"n": step}, step=step)
    assert not handle.flush(30.0)
    backend.fault = lambda _what: None
    handle.log_result("facts", {"n": 5}, step=5)
    assert handle.flush(30.0)
    assert handle.close().complete
    assert sorted(_numbers(backend)) == [(step, step) for step in range(6)]


def test_what_is_pending_at_close_is_delivered_by_sync(
    backend: Backend, tmp_path: Path
) -> None:
    backend.fault = lambda what: 404 if what == "Run" else None
    handle = open_run(tmp_path / "results", id="o1", sinks=["wandb"])
    for step in range(3):
        handle.log_result("facts", {"n": step}, step=step)
    report = handle.close(1.0)
    assert (report.recorded, report.sinks[0].pending) == (True, 3)
    assert "404" in str(report)
    backend.fault = lambda _what: None
    assert sync("o1", root=tmp_path / "results").complete
    (found,) = backend.runs().values()
    assert found.with_step("analysis/facts/n") == [(0, 0), (1, 1), (2, 2)]


def _numbers(backend: Backend) -> list[tuple[int, int]]:
    found = backend.runs().get("o1")
    return found.with_step("analysis/facts/n") if found else []


def test_what_the_server_of_our_run_did_not_take_is_told(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("theseus_track.sinks.wandb.begin._FINISHES", 1.0)
    delivery = Delivery(WandbSink(), run_info())
    delivery.offer(Items().figure(1))
    assert delivery.flush(30.0)
    backend.stop()
    report = delivery.close(30.0)
    backend.start()
    assert not report.complete
    assert "wandb sync" in str(report)
