import logging
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from tests.sinks.tensorboard_reader import read_board
from theseus_track.errors import BadInput, DeliveryError
from theseus_track.records import FigureItem, Item, RunInfo
from theseus_track.sinks import Delivery, RetryPolicy, TensorBoardSink
from theseus_track.sinks.conformance import Items, Shown, SinkConformance


def run_info(run_id: str = "r1", name: str = "gpt") -> RunInfo:
    return RunInfo(project="tests", name=name, id=run_id, created=0.0)


def opened(logdir: Path, run_id: str = "r1", **settings: object) -> TensorBoardSink:
    sink = TensorBoardSink(logdir, **settings)  # type: ignore[arg-type]
    sink.open(run_info(run_id))
    return sink


def places(logdir: Path) -> set[str]:
    return {str(path.parent.relative_to(logdir)) for path in logdir.rglob("*tfevents*")}


class TestConformance(SinkConformance):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.logdir = tmp_path / "logs"

    def make(self) -> TensorBoardSink:
        return TensorBoardSink(self.logdir)

    def shown(self) -> list[Shown]:
        return read_board(self.logdir)


def test_results_and_metrics_have_their_own_directories(tmp_path: Path) -> None:
    sink, items = opened(tmp_path), Items()
    sink.write(items.figure(1))
    sink.write(items.json(1, {"a": 1}))
    sink.write(items.metrics(1, {"loss": 1.0}))
    sink.close(1.0)
    assert places(tmp_path) == {"gpt", "gpt/theseus"}
    assert len(list(tmp_path.rglob("*tfevents*"))) == 2


def test_a_run_without_items_leaves_no_event_file(tmp_path: Path) -> None:
    opened(tmp_path).close(1.0)
    assert places(tmp_path) == set()


def test_a_late_step_goes_to_a_directory_that_the_receipt_names(tmp_path: Path) -> None:
    sink, items = opened(tmp_path), Items()
    receipts = [sink.write(items.figure(step)) for step in (10, 20, 30, 15, 25, 40)]
    sink.close(1.0)
    assert [receipt.reason for receipt in receipts[:3]] == ["", "", ""]
    assert all("gpt/theseus-replay-1" in receipt.reason for receipt in receipts[3:5])
    assert receipts[5].reason == ""
    assert places(tmp_path) == {"gpt/theseus", "gpt/theseus-replay-1"}


def test_late_metrics_stay_apart_from_late_results(tmp_path: Path) -> None:
    sink, items = opened(tmp_path), Items()
    for step in (2, 1):
        sink.write(items.metrics(step, {"activations": 1.0}))
        sink.write(items.figure(step))
    sink.close(1.0)
    assert {"gpt/theseus-metrics-1", "gpt/theseus-replay-1"} < places(tmp_path)


def test_a_resumed_run_appends_what_is_higher_and_files_stay_in_order(
    tmp_path: Path,
) -> None:
    for steps in ((1, 2), (3, 4)):
        sink, items = opened(tmp_path), Items(f"w{steps}")
        for step in steps:
            assert sink.write(items.figure(step)).reason == ""
        sink.close(1.0)
    assert places(tmp_path) == {"gpt/theseus"}
    assert [shown.step for shown in read_board(tmp_path)] == [1, 2, 3, 4]


def test_a_second_writer_of_a_run_that_is_written_keeps_out_of_its_files(
    tmp_path: Path,
) -> None:
    live, items = opened(tmp_path), Items("live")
    live.write(items.figure(1))
    second = opened(tmp_path)
    receipt = second.write(Items("replay").figure(2))
    assert "gpt/theseus-replay-1" in receipt.reason
    second.close(1.0)
    live.write(items.figure(3))
    live.close(1.0)
    assert len(list((tmp_path / "gpt/theseus").glob("*tfevents*"))) == 1
    # The lock ends with its holder: the next writer has the first directory again.
    third = opened(tmp_path)
    assert third.write(Items("later").figure(4)).reason == ""
    third.close(1.0)


def test_runs_of_one_name_get_directories_of_their_own(tmp_path: Path) -> None:
    for run_id in ("r1", "r2", "r1"):
        sink = opened(tmp_path, run_id)
        sink.write(Items().metrics(1, {"loss": 1.0}))
        sink.close(1.0)
    assert {path.name for path in tmp_path.iterdir()} == {"gpt", "gpt-r2"}


def test_many_processes_claim_one_new_directory(tmp_path: Path) -> None:
    logdir, start = tmp_path / "not" / "there", threading.Barrier(4)
    sinks = [TensorBoardSink(logdir) for _ in range(4)]

    def claim(sink: TensorBoardSink) -> None:
        start.wait()
        sink.open(run_info())

    threads = [threading.Thread(target=claim, args=(sink,)) for sink in sinks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {sink.directory for sink in sinks} == {logdir / "gpt"}
    for number, sink in enumerate(sinks):
        sink.write(Items(f"w{number}").figure(1))
        sink.close(1.0)
    assert len(places(logdir)) == 4


def test_in_the_users_own_log_directory_only_results_are_added(tmp_path: Path) -> None:
    sink, items = opened(tmp_path, run="", metrics=False), Items()
    receipt = sink.write(items.metrics(1, {"loss": 1.0}))
    sink.write(items.figure(1))
    sink.close(1.0)
    assert receipt.status == "skipped"
    assert receipt.reason
    assert places(tmp_path) == {"theseus"}


@pytest.mark.parametrize("run", ["../elsewhere", "/abs", "a/../.."])
def test_a_run_directory_must_be_below_the_log_directory(
    tmp_path: Path, run: str
) -> None:
    with pytest.raises(BadInput, match="out of the log directory"):
        TensorBoardSink(tmp_path, run=run)


def test_names_never_lead_out_of_the_log_directory(tmp_path: Path) -> None:
    logdir = tmp_path / "logs"
    for number, name in enumerate(["../x", "/abs", "a\\b", "NUL", "é ", "n" * 300]):
        sink = TensorBoardSink(logdir)
        sink.open(run_info(f"r{number}", name))
        sink.write(Items().figure(1))
        sink.close(1.0)
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]
    assert len(places(logdir)) == 6


def test_a_step_that_no_event_can_hold_is_refused(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    assert sink.write(Items().figure(2**63)).status == "failed"
    assert sink.write(Items().figure(2**63 - 1)).status == "written"
    sink.close(1.0)


def test_pixels_that_are_no_png_are_refused(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    bad = FigureItem(
        ref=Items("bad").figure(1).ref,
        name="x",
        part="",
        step=1,
        wall_time=0.0,
        png=b"GIF89a",
        pdf=b"",
        caption="",
    )
    receipt = sink.write(bad)
    sink.close(1.0)
    assert receipt.status == "failed"
    assert "PNG" in receipt.reason


def test_writing_before_open_says_so(tmp_path: Path) -> None:
    with pytest.raises(DeliveryError, match="not open"):
        TensorBoardSink(tmp_path).write(Items().figure(1))


def test_a_log_directory_that_cannot_be_written_costs_the_delivery_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    patience = RetryPolicy(attempts=1, pause=600.0)
    with caplog.at_level(logging.CRITICAL):
        delivery = Delivery(
            TensorBoardSink(tmp_path / "file"), run_info(), retry=patience
        )
        assert delivery.offer(Items().figure(1))
        report = delivery.close(10.0)
    assert report.pending == 1
    assert "file" in str(report)


def test_naming_the_sink_imports_no_tracker() -> None:
    code = "import sys, theseus_track.sinks; print('tensorboardX' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.strip() == "False"


WRITER = textwrap.dedent(
    """
    import sys
    from theseus_track.records import RunInfo
    from theseus_track.sinks import Delivery, TensorBoardSink
    from theseus_track.sinks.conformance import Items

    def told(_sink, item, receipt):
        print(type(item).__name__, item.step, receipt.status, flush=True)

    info = RunInfo(project="tests", name="gpt", id="r1", created=0.0)
    delivery = Delivery(TensorBoardSink(sys.argv[1]), info, on_receipt=told)
    items, step = Items(), 0
    while True:
        step += 1
        delivery.offer(items.figure(step))
        delivery.offer(items.metrics(step, {"loss": 1.0}))
        delivery.flush(60.0)
    """
)


@pytest.mark.slow  # starts three processes and kills them
@pytest.mark.parametrize("lines", [1, 24, 71])
def test_kill_9_keeps_every_acknowledged_item(tmp_path: Path, lines: int) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as writer:
        assert writer.stdout
        try:
            acknowledged = [writer.stdout.readline() for _ in range(lines)]
        finally:
            writer.kill()
        acknowledged += writer.stdout.read().splitlines(keepends=True)
    whole = [line.split() for line in acknowledged if line.endswith("\n")]
    assert len(whole) >= lines
    kinds = {"FigureItem": "figure", "MetricsItem": "metric"}
    shown = {(one.kind, one.step) for one in read_board(tmp_path)}
    lost = {(kinds[kind], int(step)) for kind, step, _ in whole} - shown
    assert not lost


def test_a_resumed_run_after_a_torn_record_starts_a_new_file(tmp_path: Path) -> None:
    sink, items = opened(tmp_path), Items("w1")
    sink.write(items.figure(1))
    sink.write(items.figure(2))
    sink.close(1.0)
    (torn,) = (tmp_path / "gpt/theseus").glob("*tfevents*")
    torn.write_bytes(torn.read_bytes()[:-7])
    resumed: list[Item] = [Items("w2").figure(3)]
    sink = opened(tmp_path)
    for item in resumed:
        assert sink.write(item).reason == ""
    sink.close(1.0)
    assert [shown.step for shown in read_board(tmp_path)] == [1, 3]
