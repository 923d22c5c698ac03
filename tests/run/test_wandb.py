"""A training that logs to W&B as well: one handle, and the user's run as it was."""

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import wandb
from matplotlib.figure import Figure

from tests.models import Attention, gpt_and_variables, tokens
from tests.sinks.wandb_place import offline_environment
from tests.sinks.wandb_place import wandb_dir as wandb_dir
from tests.sinks.wandb_reader import read_run, read_runs
from theseus_track import open_run
from theseus_track.analysis import AnalysisBase, instrument
from theseus_track.errors import BadInput
from theseus_track.records import Delivered
from theseus_track.sinks import MemorySink, Sink, WandbSink
from theseus_track.store import Store

TABLE = "analysis/facts/json"


@pytest.fixture
def run(wandb_dir: Path) -> Iterator[Any]:
    run = wandb.init(
        project="mine", name="first", id="w1", group="g", tags=["t"], config={"lr": 0.1}
    )
    yield run
    run.finish()


def steps_of(found: Any, key: str = TABLE) -> list[int]:
    return sorted(step for step, _ in found.with_step(key))


def test_the_run_is_that_of_the_user(tmp_path: Path, run: Any) -> None:
    with open_run(tmp_path / "results", wandb=run) as handle:
        handle.log_result("facts", {"layers": 4}, step=3)
    info = Store(tmp_path / "results").run("w1").info
    assert (info.project, info.name, info.group) == ("mine", "first", "g")
    assert info.tags == ("t",)
    assert info.config == {"lr": 0.1}
    assert info.sinks["wandb"] == {"entity": run.entity, "project": "mine", "id": "w1"}
    assert wandb.run is run, "it is not ours to finish"


def test_finishing_the_users_run_delivers_what_is_on_its_way(
    tmp_path: Path, wandb_dir: Path, run: Any
) -> None:
    handle = open_run(tmp_path / "results", wandb=run)
    for step in range(20):
        run.log({"loss": 1.0})
        handle.log_metrics({"loss": 1.0}, step=step)
        handle.log_result("facts", {"step": step}, step=step)
    wandb.finish()
    assert steps_of(read_run(wandb_dir)) == list(range(20))
    report = handle.close()
    assert report.complete, str(report)
    found = Store(tmp_path / "results").run("w1").records()
    marks = [mark for _, mark in found if isinstance(mark, Delivered) and mark.through]
    assert {mark.status for mark in marks} == {"skipped"}
    assert len(marks) < 5, (
        "the rows of metrics that W&B does not take have one together"
    )


def test_leaving_the_users_block_delivers_too(tmp_path: Path, wandb_dir: Path) -> None:
    with wandb.init(project="mine") as run:
        handle = open_run(tmp_path / "results", wandb=run)
        for step in range(3):
            handle.log_result("facts", {"step": step}, step=step)
    assert steps_of(read_run(wandb_dir)) == [0, 1, 2]
    assert handle.close().complete


def test_what_comes_after_the_users_finish_is_told_and_kept(
    tmp_path: Path, wandb_dir: Path, run: Any
) -> None:
    handle = open_run(tmp_path / "results", wandb=run)
    handle.log_result("facts", {"step": 1}, step=1)
    run.finish()
    handle.log_result("facts", {"step": 2}, step=2)
    report = handle.close()
    assert (report.sinks[0].delivered, report.sinks[0].failed) == (1, 1)
    assert "finished" in str(report)
    assert steps_of(read_run(wandb_dir)) == [1]
    assert list(Store(tmp_path / "results").run("w1")["facts"].steps) == [1, 2]


class Mean(AnalysisBase):
    TARGET = Attention

    def analyze(self, layer: Any, inputs: Any) -> Any:
        return jnp.mean(inputs.x)

    def plot(self, values: Any) -> Any:
        figure = Figure(figsize=(1, 1))
        figure.add_subplot()
        return figure


@pytest.mark.parametrize("stepped", [True, False])
def test_who_waits_has_the_figure_in_the_row_of_that_step(
    tmp_path: Path, wandb_dir: Path, run: Any, stepped: bool
) -> None:
    model, variables = gpt_and_variables()
    _, values = instrument(jax.jit(model.apply), [Mean])(variables, tokens())
    handle = open_run(tmp_path / "results", wandb=run)
    for step in range(6):
        where = {"step": step} if stepped else {"commit": False}
        run.log({"loss": float(step)}, **where)
        if step % 2 == 0:
            handle.log(values, step=step, wait=True)
        run.log({"late": float(step)}, **({"step": step} if stepped else {}))
    assert handle.close().complete
    run.finish()
    found = read_run(wandb_dir)
    assert [row["_step"] for row in found.rows] == list(range(6))
    assert found.with_step("analysis/mean", "_step") == [
        (step, value)
        for step, (_, value) in zip(
            (0, 2, 4), found.with_step("analysis/mean"), strict=True
        )
    ]
    assert found.with_step("loss", "_step") == [(s, float(s)) for s in range(6)]
    assert found.with_step("late", "_step") == [(s, float(s)) for s in range(6)]


def test_a_run_that_begins_after_ours_is_ridden(
    tmp_path: Path, wandb_dir: Path
) -> None:
    handle = open_run(tmp_path / "results", sinks=["wandb"])
    run = wandb.init(project="mine")
    run.log({"loss": 1.0})
    handle.log_result("facts", {"step": 7}, step=7)
    handle.log_metrics({"loss": 2.0}, step=7)
    assert handle.close().complete
    run.finish()
    found = read_run(wandb_dir)
    assert steps_of(found) == [7]
    assert found.column("loss") == [1.0]


def test_without_a_run_of_the_user_ours_begins_with_the_metrics(
    tmp_path: Path, wandb_dir: Path
) -> None:
    with open_run(tmp_path / "results", project="p", id="o1", sinks=["wandb"]) as run:
        for step in range(0, 50, 10):
            run.log_metrics({"loss": 1.0 / (1 + step)}, step=step)
            run.log_result("facts", {"step": step}, step=step)
    found = read_run(wandb_dir)
    assert (found.id, found.run.project) == ("o1", "p")
    assert steps_of(found) == [0, 10, 20, 30, 40]
    assert [row["_step"] for row in found.rows] == [0, 10, 20, 30, 40]
    assert found.with_step("loss", "_step") == [
        (step, 1.0 / (1 + step)) for step in range(0, 50, 10)
    ]
    assert found.steps_of["loss"] == "theseus/train_step"


def test_a_run_of_the_user_that_begins_after_ours_is_another(
    tmp_path: Path, wandb_dir: Path
) -> None:
    with open_run(tmp_path / "results", id="a1", sinks=["wandb"]) as handle:
        handle.log_metrics({"loss": 1.0}, step=1)
        assert handle.flush(30.0)
        run = wandb.init(project="mine", id="b1")
        assert run.id == "b1"
        run.log({"mine": 1.0})
        run.finish()
    ours, theirs = read_runs(wandb_dir)
    assert ours.column("mine") == []
    assert theirs.column("mine") == [1.0]
    assert theirs.column("theseus/train_step") == []


def test_a_sink_with_settings_rides_the_run_that_is_given(
    tmp_path: Path, wandb_dir: Path, run: Any
) -> None:
    sinks: list[Sink] = [WandbSink(mirror=True), MemorySink()]
    with open_run(tmp_path / "results", wandb=run, sinks=sinks) as handle:
        handle.log_metrics({"loss": 2.0}, step=4)
    run.finish()
    assert read_run(wandb_dir).column("theseus/metrics/loss") == [2.0]


def test_a_missing_package_is_named_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(BadInput, match=r"pip install 'theseus-track\[wandb\]'"):
        open_run(tmp_path / "results", sinks=["wandb"])
    assert not (tmp_path / "results").exists()


PROGRAM = """
import os, signal, sys
from theseus_track import open_run

def begin():
    import wandb
    return wandb.init(project="mine", id="w1")

def log(handle, first=0):
    for step in range(first, first + 3):
        handle.log_result("facts", {"step": step}, step=step)
        handle.log_metrics({"loss": 1.0}, step=step)

def train(handle):
    log(handle)
    print("flushed", handle.flush(30.0))
    log(handle, 3)

root = sys.argv[1]
"""


def run_program(tmp_path: Path, lines: str) -> str:
    """Run a training that does not close anything; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + textwrap.dedent(lines), str(tmp_path / "r")],
        capture_output=True,
        text=True,
        check=True,
        timeout=90,
        cwd=tmp_path,
        env=offline_environment(tmp_path / "wandb"),
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


ENDS = {
    "before": "run = begin(); log(open_run(root, wandb=run))",
    "after": 'handle = open_run(root, sinks=["wandb"]); run = begin(); train(handle)',
    "ours": 'train(open_run(root, sinks=["wandb"]))',
}


@pytest.mark.slow  # starts a process that imports JAX and wandb
@pytest.mark.parametrize("order", ENDS)
def test_at_the_end_of_the_program_everything_is_delivered(
    tmp_path: Path, order: str
) -> None:
    printed = run_program(tmp_path, ENDS[order])
    assert "pending" not in printed
    steps = [0, 1, 2] if order == "before" else [0, 1, 2, 3, 4, 5]
    assert steps_of(read_run(tmp_path / "wandb")) == steps


@pytest.mark.slow  # starts a process that imports JAX and wandb, and kills W&B's own
@pytest.mark.parametrize("owner", ["wandb=begin()", 'sinks=["wandb"]'])
def test_the_death_of_the_process_of_wandb_costs_its_delivery_only(
    tmp_path: Path, owner: str
) -> None:
    printed = run_program(
        tmp_path,
        f"""
        import pathlib
        handle = open_run(root, {owner})
        log(handle)
        print("flushed", handle.flush(30.0))
        for task in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = task.read_text().rpartition(")")[2].split()
                name = (task.parent / "comm").read_text()
            except OSError:
                continue
            if "wandb" in name and int(fields[1]) == os.getpid():
                print("killed", name)
                os.kill(int(task.parent.name), signal.SIGKILL)
        log(handle, 3)
        report = handle.close(5.0)
        print("recorded", report.recorded)
        # wandb's own handler at exit prints a traceback of its own.
        sys.stdout.flush()
        os._exit(0)
        """,
    )
    assert "killed" in printed
    assert "recorded True" in printed
