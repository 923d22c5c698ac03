"""Results that come when the training is over: the run is taken up, or accompanied."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import wandb

from tests.sinks.wandb_backend import ENTITY, Backend, online
from tests.sinks.wandb_backend import backend as backend
from tests.sinks.wandb_place import offline_environment
from tests.sinks.wandb_place import wandb_dir as wandb_dir
from tests.sinks.wandb_reader import read_runs
from tests.sinks.wandb_user import of_the_user, three_unstepped_rows
from theseus_track import open_run
from theseus_track.run import reopen_run
from theseus_track.sinks import SyncReport, sync

NUMBER = "analysis/facts/n"


def train(root: Path, *, finish: bool = True) -> Any:
    """Log 40 steps to a run of the user, with one result of ours."""
    mine = wandb.init(
        project="mine", id="w1", group="g", config={"lr": 0.1}, reinit="create_new"
    )
    mine.define_metric("train/step", hidden=True)
    mine.define_metric("val/*", step_metric="train/step")
    mine.define_metric("loss", step_metric="train/step", summary="min,max")
    with open_run(root, wandb=mine) as run:
        for step in range(40):
            three_unstepped_rows(mine, step)
            if step == 30:
                run.log_result("facts", {"n": 30}, step=30)
    if finish:
        mine.finish()
    return mine


def replay(root: Path, *steps: int) -> SyncReport:
    """Add results at some steps, then deliver them."""
    with reopen_run(root, "w1") as run:
        for step in steps:
            run.log_result("facts", {"n": step}, step=step)
            assert run.flush()
    return sync("w1", root=root)


def test_a_finished_run_is_taken_up_as_it_was(backend: Backend, tmp_path: Path) -> None:
    train(tmp_path)
    before = backend.runs()["w1"]
    report = replay(tmp_path, 20, 10)
    assert report.complete, str(report)
    (after,) = backend.runs().values()
    assert after.rows[: len(before.rows)] == before.rows
    assert of_the_user(after.rows) == of_the_user(before.rows)
    assert after.with_step(NUMBER) == [(30, 30), (10, 10), (20, 20)]
    assert after.steps_of == {
        "loss": "train/step",
        "val/*": "train/step",
        NUMBER: "theseus/step",
        "analysis/facts/json": "theseus/step",
    }
    assert after.hidden == before.hidden >= {"train/step", "theseus/step"}
    assert after.summary["loss"] == before.summary["loss"] == {"min": 0.025, "max": 1.0}
    assert after.summary[NUMBER] == 30
    assert after.config == before.config
    assert backend.state("w1") == "finished"
    assert str(sync("w1", root=tmp_path)) == "wandb: 0 delivered, 0 pending, 0 failed"
    assert backend.runs()["w1"] == after


def test_a_run_that_goes_on_is_accompanied_and_not_touched(
    backend: Backend, tmp_path: Path
) -> None:
    mine = train(tmp_path, finish=False)
    report = replay(tmp_path, 20, 10)
    mine.log({"loss": 0.0})
    mine.finish()
    assert report.complete, str(report)
    assert f"{ENTITY}/mine/w1 is not finished" in str(report)
    assert f"{ENTITY}/mine/w1-analysis" in str(report)
    found = backend.runs()
    assert len(of_the_user(found["w1"].rows)) == 121
    assert [step for step, _ in found["w1"].with_step(NUMBER)] == [30]
    beside = found["w1-analysis"]
    assert (beside.run.run_group, beside.run.job_type) == ("g", "theseus-analysis")
    assert beside.config == {"lr": 0.1, "theseus/source_run": "w1"}
    assert beside.with_step(NUMBER, "_step") == [(10, 10), (20, 20)]
    assert beside.steps_of[NUMBER] == "theseus/step"


def test_a_companion_is_continued(backend: Backend, tmp_path: Path) -> None:
    mine = train(tmp_path, finish=False)
    replay(tmp_path, 20)
    first = backend.runs()["w1-analysis"]
    replay(tmp_path, 10, 25)
    mine.finish()
    beside = backend.runs()["w1-analysis"]
    assert beside.rows[: len(first.rows)] == first.rows
    assert beside.with_step(NUMBER) == [(20, 20), (10, 10), (25, 25)]
    assert beside.steps_of == first.steps_of
    # The highest step of the run that it stands beside.
    assert beside.summary[NUMBER] == 30


def test_offline_nobody_knows_so_that_it_is_accompanied(
    wandb_dir: Path, tmp_path: Path
) -> None:
    train(tmp_path / "results")
    report = replay(tmp_path / "results", 20, 10)
    assert report.complete, str(report)
    assert "W&B is offline" in str(report)
    found = {run.id: run for run in read_runs(wandb_dir)}
    assert len(of_the_user(found["w1"].rows)) == 120
    assert found["w1-analysis"].with_step(NUMBER, "_step") == [(10, 10), (20, 20)]
    assert found["w1-analysis"].run.run_group == "g"


def test_an_address_names_a_run_that_was_never_ours(
    backend: Backend, tmp_path: Path
) -> None:
    with wandb.init(project="mine", id="other") as mine:
        mine.log({"loss": 1.0})
    with open_run(tmp_path, id="r1") as run:
        run.log_metrics({"loss": 2.0}, step=3)
        run.log_result("facts", {"n": 3}, step=3)
    address = f"wandb:{ENTITY}/mine/other"
    assert sync("r1", root=tmp_path, to=[address]).complete
    (found,) = backend.runs().values()
    assert found.with_step(NUMBER) == [(3, 3)]
    assert found.column("loss") == [1.0], "the metrics of that run are its user's"
    missing = sync("r1", root=tmp_path, to=[f"wandb:{ENTITY}/mine/gone"])
    assert f"W&B has no run {ENTITY}/mine/gone" in str(missing)
    assert backend.runs()["gone-analysis"].with_step(NUMBER) == [(3, 3)]


def test_a_run_that_was_never_shown_is_shown_as_a_whole(
    backend: Backend, tmp_path: Path
) -> None:
    with open_run(tmp_path, project="p", id="r1") as run:
        for step in (0, 10, 20):
            run.log_metrics({"loss": 1.0 / (1 + step)}, step=step)
            run.log_result("facts", {"n": step}, step=step)
    assert sync("r1", root=tmp_path, to=["wandb"]).complete
    found = backend.runs()["r1"]
    assert found.run.project == "p"
    assert [row["_step"] for row in found.rows] == [0, 10, 20]
    assert found.with_step(NUMBER, "_step") == [(0, 0), (10, 10), (20, 20)]
    assert found.with_step("loss", "theseus/train_step") == [
        (step, 1.0 / (1 + step)) for step in (0, 10, 20)
    ]


def test_what_a_server_shows_already_is_not_sent_again(
    backend: Backend, tmp_path: Path
) -> None:
    with open_run(tmp_path, project="p", id="r1") as run:
        for step in (0, 200_000):
            run.log_metrics({"loss": 1.0}, step=step)
            run.log_result("facts", {"n": step}, step=step)
    assert sync("r1", root=tmp_path, to=["wandb"]).complete
    before = backend.runs()["r1"]
    report = sync("r1", root=tmp_path, to=["wandb"], again=True)
    assert (report.sinks[0].delivered, report.complete) == (4, True), str(report)
    assert backend.runs()["r1"].rows == before.rows
    assert backend.state("r1") == "finished"


def test_a_server_that_does_not_give_its_rows_gets_some_twice(
    backend: Backend, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_run(tmp_path, project="p", id="r1") as run:
        run.log_result("facts", {"n": 1}, step=1)
    assert sync("r1", root=tmp_path, to=["wandb"]).complete
    backend.fault = lambda what: 404 if what == "RunHistoryKeys" else None
    assert sync("r1", root=tmp_path, to=["wandb"], again=True).complete
    assert "may come twice" in caplog.text
    found = backend.runs()["r1"]
    assert found.with_step(NUMBER) == [(1, 1), (1, 1)]
    assert len(set(found.column("theseus/records"))) == 1, "told apart by the record"


KILLED = """
import os, signal, sys, time
from theseus_track import open_run
run = open_run(sys.argv[1], project="p", id="k1", sinks=["wandb"])
for step in range(60):
    run.log_metrics({"loss": 1.0}, step=step)
    run.log_result("facts", {"n": step}, step=step)
    if step == 20:
        print("flushed", run.flush(30.0))
run._engine.recorder.join(time.monotonic() + 30.0)
run._engine.drawer.join(time.monotonic() + 30.0)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow  # starts a process that imports JAX and wandb
def test_a_run_of_ours_that_was_killed_gets_the_rest(
    backend: Backend, tmp_path: Path
) -> None:
    place = tmp_path / "killed"
    environment = offline_environment(place) | online(place, backend)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path / "results")],
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
        env=environment,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert backend.state("k1") == "running"
    report = sync("k1", root=tmp_path / "results")
    assert report.complete, str(report)
    found = backend.runs()["k1"]
    # Nothing had a mark yet; what the server had is read back and not sent again.
    assert sorted(found.with_step(NUMBER)) == [(step, step) for step in range(60)]
    assert sorted(found.with_step("loss", "theseus/train_step")) == [
        (step, 1.0) for step in range(60)
    ]
    assert found.steps_of[NUMBER] == "theseus/step"
    assert found.summary[NUMBER] == 59
