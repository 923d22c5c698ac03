"""Results in a run that the user logs to: nothing of theirs and of ours is lost."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import wandb

from tests.sinks.wandb_place import abandon
from tests.sinks.wandb_place import wandb_dir as wandb_dir
from tests.sinks.wandb_reader import read_run, read_runs, read_shown
from tests.sinks.wandb_user import STYLES, Style, of_the_user
from theseus_track.records import Item, RunInfo
from theseus_track.sinks import Delivery, Sink, WandbSink
from theseus_track.sinks.conformance import Items, Shown, SinkConformance

FIGURE = "analysis/activations"


def run_info(run_id: str = "r1") -> RunInfo:
    return RunInfo(project="tests", name="gpt", id=run_id, created=0.0)


def begin(**settings: Any) -> Any:
    return wandb.init(project="mine", reinit="create_new", **settings)


@pytest.fixture
def run(wandb_dir: Path) -> Iterator[Any]:
    run = begin(id="mine")
    yield run
    run.finish()


def opened(run: Any, **settings: Any) -> WandbSink:
    sink = WandbSink(run, **settings)
    sink.open(run_info())
    return sink


class TestConformanceWhileTheUserLogs(SinkConformance):
    """The user's own rows go on all the time, in one run for each of ours."""

    @pytest.fixture(autouse=True)
    def _place(self, wandb_dir: Path) -> Iterator[None]:
        self.directory = wandb_dir
        self.users: list[User] = []
        yield
        for user in self.users:
            user.end()

    def make(self) -> WandbSink:
        # The first sink of a test is asked for its capabilities only at times.
        user = User(begin(settings=wandb.Settings(console="off")))
        self.users.append(user)
        return WandbSink(user.run, mirror=True)

    def abandon(self, sink: Sink) -> None:
        self.users[-1].end()
        abandon(sink)

    def shown(self) -> list[Shown]:
        for user in self.users:
            user.end()
        return read_shown(self.directory)


class User:
    """Logs a row every few milliseconds until told to end."""

    def __init__(self, run: Any) -> None:
        self.run = run
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._log, daemon=True)
        self._thread.start()

    def end(self) -> None:
        if not self._stop.is_set():
            self._stop.set()
            self._thread.join(10.0)
            self.run.finish()

    def _log(self) -> None:
        while not self._stop.wait(0.003):
            self.run.log({"_user": 1.0})


@pytest.mark.parametrize("style", STYLES)
def test_late_results_cost_the_user_nothing_and_lose_nothing(
    wandb_dir: Path, style: Style
) -> None:
    plain, ridden = begin(id="plain"), begin(id="ridden")
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
    assert report.complete
    assert report.delivered == 12
    first, second = read_runs(wandb_dir)
    assert of_the_user(second.rows) == of_the_user(first.rows)
    steps = list(range(0, 60, 10))
    assert sorted(step for step, _ in second.with_step(FIGURE)) == steps
    means = sorted(second.with_step("analysis/entropy/mean"))
    assert means == [(step, step + 5.0) for step in steps]
    assert second.steps_of[FIGURE] == "theseus/step"
    assert second.steps_of["analysis/entropy/mean"] == "theseus/step"
    assert second.hidden == {"theseus/step", "theseus/time", "theseus/records"}


def test_what_the_user_logs_to_the_same_step_afterwards_is_kept(
    wandb_dir: Path, run: Any
) -> None:
    sink = opened(run)
    run.log({"loss": 1.0}, step=30)
    sink.write(Items().figure(30))
    run.log({"acc": 0.5}, step=30)
    sink.close(1.0)
    run.finish()
    (row,) = read_run(wandb_dir).rows
    assert (row["loss"], row["acc"], row["_step"]) == (1.0, 0.5, 30)
    assert row["theseus/step"] == 30
    assert row[FIGURE]["_type"] == "image-file"


def test_a_row_holds_one_step_of_ours_and_all_parts_of_it(
    wandb_dir: Path, run: Any
) -> None:
    sink, items = opened(run), Items()
    receipts = [
        sink.write(items.figure(1, part="left")),
        sink.write(items.figure(1, part="right")),
        sink.write(items.figure(2, part="left")),
    ]
    assert [receipt.status for receipt in receipts] == ["written"] * 2 + ["deferred"]
    run.log({"loss": 1.0})
    assert sink.write(items.figure(2, part="right")).status == "written"
    sink.close(1.0)
    run.log({"loss": 2.0})
    run.finish()
    first, second = read_run(wandb_dir).rows
    assert (first["theseus/step"], first["loss"]) == (1, 1.0)
    assert (second["theseus/step"], second["loss"]) == (2, 2.0)
    for row in (first, second):
        assert {"analysis/activations.left", "analysis/activations.right"} < set(row)


def test_what_is_left_at_close_gets_rows_of_its_own(wandb_dir: Path, run: Any) -> None:
    delivery, items = Delivery(WandbSink(run), run_info()), Items()
    run.log({"loss": 1.0})
    for step in (30, 10, 20):
        delivery.offer(items.figure(step))
    assert delivery.close(30.0).complete
    run.finish()
    steps = [step for step, _ in read_run(wandb_dir).with_step(FIGURE)]
    assert sorted(steps) == [10, 20, 30]


def test_what_was_deferred_is_let_go_of_when_the_user_logs_on(
    wandb_dir: Path, run: Any
) -> None:
    sink, items = opened(run), Items()
    first, second = items.figure(1), items.figure(2)
    sink.write(first)
    assert sink.write(second).status == "deferred"
    assert sink.holds(second)
    assert not sink.holds(first)
    run.log({"loss": 1.0})
    sink.flush(1.0)
    assert not sink.holds(second)
    sink.close(1.0)


def test_the_summary_is_that_of_the_highest_step(wandb_dir: Path, run: Any) -> None:
    sink, items = opened(run), Items()
    for step in (30, 10, 20):
        sink.write(items.json(step, {"mean": float(step)}))
        run.log({"loss": 1.0})
    sink.close(1.0)
    run.finish()
    found = read_run(wandb_dir)
    assert found.column("analysis/entropy/mean") == [30.0, 10.0, 20.0]
    assert found.summary["analysis/entropy/mean"] == 30.0


def test_metrics_are_the_users_unless_asked_for(wandb_dir: Path, run: Any) -> None:
    assert opened(run).write(Items().metrics(1, {"loss": 2.0})).status == "skipped"
    mirror = opened(run, mirror=True)
    run.log({"loss": 1.0}, commit=False)
    assert mirror.write(Items().metrics(7, {"loss": 2.0})).status == "written"
    mirror.close(1.0)
    run.finish()
    (row,) = read_run(wandb_dir).rows
    assert (row["loss"], row["theseus/metrics/loss"]) == (1.0, 2.0)
    assert row["theseus/train_step"] == 7


def test_the_users_definitions_do_not_reach_our_keys(wandb_dir: Path, run: Any) -> None:
    run.define_metric("*", step_metric="train/step")
    sink = opened(run)
    run.log({"loss": 1.0, "train/step": 40})
    sink.write(Items().figure(10))
    run.log({"loss": 0.5, "train/step": 41})
    sink.close(1.0)
    run.finish()
    found = read_run(wandb_dir)
    assert found.with_step("loss", "train/step") == [(40, 1.0), (41, 0.5)]
    assert [step for step, _ in found.with_step(FIGURE)] == [10]
    assert found.steps_of[FIGURE] == "theseus/step"


def test_after_the_user_finished_the_run_results_fail_at_once(
    wandb_dir: Path, run: Any
) -> None:
    sink, items = opened(run), Items()
    sink.write(items.figure(1))
    run.finish()
    receipt = sink.write(items.figure(2))
    assert receipt.status == "failed"
    assert "finished" in receipt.reason
    sink.close(1.0)


def test_a_run_that_was_finished_before_the_first_delivery_fails_it(
    wandb_dir: Path, run: Any
) -> None:
    sink = opened(run)
    run.finish()
    assert sink.write(Items().figure(1)).status == "failed"
    sink.close(1.0)


def test_a_disabled_run_takes_nothing(wandb_dir: Path) -> None:
    run = wandb.init(mode="disabled")
    sink = opened(None)
    receipt = sink.write(Items().figure(1))
    run.finish()
    assert receipt.status == "skipped"
    assert "disabled" in receipt.reason
    sink.close(1.0)


class Unreachable:
    """A run whose process died: what every call to it raises."""

    disabled = False
    settings = wandb.Settings()
    step = 0

    def define_metric(self, *_: Any, **__: Any) -> None:
        raise ConnectionResetError("Connection lost")


def test_a_run_whose_process_died_raises_and_keeps_nothing() -> None:
    sink = opened(Unreachable())
    item: Item = Items().figure(1)
    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            sink.write(item)
    assert not sink.holds(item)
    sink.close(1.0)
