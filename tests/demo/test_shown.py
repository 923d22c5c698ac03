"""What the demo leaves in TensorBoard, and what a killed demo leaves in the ledger."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.demo.test_demo import TINY
from tests.sinks.tensorboard_server import LOADERS, Board, serve, wait_until
from theseus_track.demo import GPTWithAnalysis
from theseus_track.store import Run, Store, verify

# Trains, and starts servers and processes.
pytestmark = pytest.mark.slow

# In seconds; a bound against hanging, not an expectation.
LIMIT = 100.0
EVALUATIONS = [3, 6, 9]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shown")
    settings: dict[str, Any] = {**TINY, "steps": 9, "eval_every": 3}
    GPTWithAnalysis(**settings)(root, name="train-gpt", sinks=["tensorboard"])
    return root


@pytest.fixture(scope="module", params=list(LOADERS))
def board(root: Path, request: pytest.FixtureRequest) -> Iterator[Board]:
    with serve(root / "tensorboard", request.param) as board:
        wait_until(
            lambda: len(board.scalars("train-gpt", "train/loss")) == 9,
            LIMIT,
            "the loss curve is not loaded",
        )
        yield board


def test_every_figure_is_served_at_its_step_and_the_loss_curve_beside(
    root: Path, board: Board
) -> None:
    run = Store(root).run("train-gpt")
    figures = [name for name in run.analyses if run[name].latest.figure is not None]
    assert len(figures) == 3
    for name in figures:
        shown = board.images("train-gpt/theseus", name)
        assert [step for step, _, _ in shown] == EVALUATIONS
        for step, wall_time, png in shown:
            stored = run[name][step]
            assert stored.figure is not None
            assert png == stored.figure.png
            assert wall_time == pytest.approx(stored.wall_time, abs=1e-3)
    rows = [row for row in run.metrics() if "train/loss" in row.metrics]
    points = board.scalars("train-gpt", "train/loss")
    assert [step for _, step, _ in points] == [row.step for row in rows]
    kept = [row.metrics["train/loss"] for row in rows]
    assert [loss for _, _, loss in points] == pytest.approx(kept, rel=1e-6)
    evaluated = board.scalars("train-gpt", "eval/loss")
    assert [step for _, step, _ in evaluated] == EVALUATIONS


@pytest.mark.timeout(300)  # two trainings, which a loaded machine takes long to start
def test_a_killed_demo_loses_nothing_and_the_next_one_works(tmp_path: Path) -> None:
    tiny = {**TINY, "steps": 100_000, "eval_every": 5, "layers": 1}
    command = [
        *(sys.executable, "-m", "theseus_track.cli", "run"),
        *("demo/gpt/train-with-analysis", "--root", str(tmp_path)),
        *("--name", "train-gpt", "--to", "tensorboard"),
        *(word for key, value in tiny.items() for word in ("--set", f"{key}={value}")),
    ]
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            _wait(lambda: _acknowledged(tmp_path) != set(), log)
            time.sleep(random.Random(3).uniform(0, 1))
            before = _acknowledged(tmp_path)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait(LIMIT)
    after = _acknowledged(tmp_path)
    assert before <= after
    run = Store(tmp_path).run("train-gpt")
    assert run.state == "stopped"
    assert verify(tmp_path) == []
    for result in run.results():
        assert result.values is not None

    settings: dict[str, Any] = {**TINY, "steps": 2, "eval_every": 2}
    GPTWithAnalysis(**settings)(tmp_path, name="train-gpt", sinks=["tensorboard"])
    newest = Store(tmp_path).run("train-gpt")
    assert newest.id != run.id
    assert newest.state == "finished"
    assert verify(tmp_path) == []


def _acknowledged(root: Path) -> set[tuple[str, int]]:
    """Return (NAME, step) of every values record that can be read now."""
    if not (root / "runs").is_dir():
        return set()
    runs: list[Run] = Store(root).runs()
    return {
        (result.name, result.step)
        for run in runs
        for result in run.results()
        if result.values_record is not None
    }


def _wait(condition: Callable[[], bool], log: Path) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.2)
