"""How a training ends: by Ctrl-C, with a full disk, with a tracker that hangs."""

import contextlib
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from theseus_track import open_run
from theseus_track.errors import DeliveryError
from theseus_track.sinks import MemorySink
from theseus_track.sinks.conformance.faults import RefusesThird
from theseus_track.store import Store, verify

PROGRAM = """
import sys, time
from matplotlib.figure import Figure
from theseus_track import open_run
from theseus_track.sinks import MemorySink
from theseus_track.sinks.conformance.faults import BlocksOnClose

def log(run, steps):
    for step in steps:
        run.log_metrics({"loss": 1.0}, step=step)
        run.log_result("table", {"step": step}, step=step)
        run.log_result("figure", Figure(), step=step)
"""


@contextlib.contextmanager
def training(tmp_path: Path, lines: str) -> Iterator["subprocess.Popen[str]"]:
    """Start a training, which does not outlive the test."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM + textwrap.dedent(lines), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow  # starts a process that imports JAX and draws
def test_a_tracker_that_hangs_does_not_hold_the_end(tmp_path: Path) -> None:
    program = """
    run = open_run(sys.argv[1], id="r1", sinks=[BlocksOnClose(MemorySink())])
    log(run, range(3))
    run.flush(60.0)
    print(run.close(timeout=0.5))
    """
    with training(tmp_path, program) as process:
        # The sink blocks for ten minutes.
        printed, errors = process.communicate(timeout=100)
    assert (process.returncode, "Traceback" in errors) == (0, False), errors
    assert "memory: 9 delivered, 0 pending, 0 failed, not closed" in printed
    assert "the sink has not returned from close" in printed
    assert Store(tmp_path).run("r1")["figure"].steps == [0, 1, 2]


@pytest.mark.slow  # starts a process that imports JAX
def test_at_exit_a_tracker_that_hangs_is_left_behind_and_named(tmp_path: Path) -> None:
    program = """
    blocks, takes = BlocksOnClose(MemorySink()), MemorySink()
    takes.name = "other"
    run = open_run(sys.argv[1], id="r1", sinks=[blocks, takes], close_timeout=1.0)
    run.log_result("table", {"n": 1}, step=1)
    """
    with training(tmp_path, program) as process:
        _, errors = process.communicate(timeout=100)
    assert (process.returncode, "Traceback" in errors) == (0, False), errors
    assert "memory: 1 delivered, 0 pending, 0 failed, not closed" in errors
    assert "has not returned from close" in errors
    assert "other: 1 delivered, 0 pending, 0 failed\n" in errors
    assert Store(tmp_path).run("r1").state == "finished"


@pytest.mark.slow  # starts a process that imports JAX and draws
def test_a_second_interrupt_ends_a_close_and_costs_nothing_recorded(
    tmp_path: Path,
) -> None:
    program = """
    with open_run(sys.argv[1], id="r1", sinks=[BlocksOnClose(MemorySink())]) as run:
        log(run, range(3))
        run.flush(60.0)
        log(run, range(3, 6))
        try:
            print("training", flush=True)
            time.sleep(100)
        finally:
            print("closing", flush=True)
    """
    with training(tmp_path, program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "training\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "closing\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.0)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode in (1, -signal.SIGINT), errors
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors
    assert verify(tmp_path) == []
    run = Store(tmp_path).run("r1")
    assert [row.step for row in run.metrics()] == list(range(6))
    assert run["figure"].steps[:3] == [0, 1, 2]


@pytest.mark.slow  # starts a process that imports JAX and draws
def test_a_full_disk_is_told_once_and_stops_nothing(tmp_path: Path) -> None:
    program = """
    import resource
    # No file can grow beyond this, as if the disk were full.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    run = open_run(sys.argv[1], id="r1", sinks=["tensorboard"])
    log(run, range(200))
    report = run.close()
    print("steps", 200, report.recorded, report.complete)
    # What measures the coverage writes its own file at the end.
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    """
    with training(tmp_path, program) as process:
        printed, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    assert "steps 200" in printed
    assert "Traceback" not in errors
    told = [line for line in errors.splitlines() if "File too large" in line]
    assert len(told) == 2, "once when it happens, and once in the report at close"
    assert "logged entries were lost" in errors
    run = Store(tmp_path).run("r1")
    steps = [row.step for row in run.metrics()]
    assert steps == list(range(len(steps)))
    assert 0 < len(steps) < 200
    assert [result.table for result in run["table"]] == [
        {"step": step} for step in run["table"].steps
    ]
    assert verify(tmp_path) == []


def test_a_tracker_that_refuses_is_counted_at_close(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_run(tmp_path, sinks=[RefusesThird(MemorySink())]) as run:
        for step in range(6):
            run.log_result("table", {"step": step}, step=step)
        report = run.close()
    (sink,) = report.sinks
    assert (sink.delivered, sink.failed) == (4, 2)
    assert "every third is refused (x2)" in str(report)
    refusals = [r for r in caplog.messages if r.startswith("memory refused")]
    assert len(refusals) == 1, "told once, when it happens"


def test_under_strict_a_refusal_is_raised_at_the_next_call(tmp_path: Path) -> None:
    run = open_run(tmp_path, sinks=[RefusesThird(MemorySink())], strict=True)
    for step in range(3):
        run.log_result("table", {"step": step}, step=step)
    assert run.flush(30.0)
    with pytest.raises(DeliveryError, match="memory refused table of step 2"):
        run.log_metrics({"loss": 1.0}, step=3)
    run.log_metrics({"loss": 1.0}, step=3)
    assert not run.close().complete
    assert [row.step for row in Store(tmp_path).run(run.id).metrics()] == [3]
