"""What takes minutes: a long training's memory, and real ones killed."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.sinks.tensorboard_reader import read_board
from tests.sinks.wandb_place import offline_environment
from theseus_track.sinks import sync
from theseus_track.store import Store, verify

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

WATCHED = Path(__file__).with_name("memory_process.py")
MEGABYTE = 1 << 20


def test_five_hundred_evaluations_take_no_more_memory(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(WATCHED), str(tmp_path / "results"), "100", "500"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=offline_environment(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < 50 * MEGABYTE


@pytest.mark.parametrize("attempt", range(3))
def test_a_real_training_may_be_killed(tmp_path: Path, attempt: int) -> None:
    settings = {"steps": 100_000, "eval_every": 2, "layers": 1, "features": 16}
    command = [
        *(sys.executable, "-m", "theseus_track.cli", "run"),
        *("demo/gpt/train-with-analysis", "--root", str(tmp_path)),
        *("--name", "train-gpt", "--to", "tensorboard"),
        *(
            word
            for key, value in settings.items()
            for word in ("--set", f"{key}={value}")
        ),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            while not _results(tmp_path):
                assert process.poll() is None, process.communicate()[1]
                time.sleep(0.2)
            time.sleep(random.Random(attempt).uniform(0.0, 10.0))
            before = _results(tmp_path)
        finally:
            os.kill(process.pid, signal.SIGKILL)
    run = Store(tmp_path).run("train-gpt")
    after = _results(tmp_path)
    assert before <= after
    assert verify(tmp_path) == []
    assert sync(run, root=tmp_path).complete
    shown = {
        (one.name, one.step)
        for one in read_board(tmp_path / "tensorboard")
        if one.kind != "metric"
    }
    # What was not drawn yet has its values in the ledger, for `replot`.
    assert shown == after


def _results(root: Path) -> set[tuple[str, int]]:
    """Return name and step of what is drawn."""
    runs = Store(root).runs() if root.is_dir() else []
    return {
        (result.name, result.step)
        for run in runs
        for result in run.results()
        if result.parts
    }
