"""A question asked afterwards appears in the trackers at the steps it belongs to."""

import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tests.jobs.small import Hidden, SmallWithAnalysis
from tests.sinks.tensorboard_reader import read_board
from tests.sinks.wandb_place import wandb_dir as wandb_dir
from tests.sinks.wandb_reader import read_runs
from theseus_track.analysis import AnalysisBase
from theseus_track.cli import main
from theseus_track.store import Store

FILE = "tests.replay.test_shown:Drawn"


class Drawn(AnalysisBase):
    """A figure that the training did not draw."""

    TARGET = Hidden

    def analyze(self, layer: Hidden, inputs: Any) -> jax.Array:
        """Return the output: [sample, unit]."""
        output: jax.Array = inputs.output
        return output

    def plot(self, values: np.ndarray) -> object:
        """Draw it."""
        return self.heatmap(values)


def replay(root: Path, *words: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(
            ["replay", "train", "--root", str(root), "-a", FILE, *words],
            prog_name="theseus-track",
        )
    code = done.value.code
    assert isinstance(code, int)
    return code


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A training that was shown in TensorBoard, with checkpoints at steps 2 and 4."""
    path = tmp_path / "root"
    SmallWithAnalysis(steps=4, checkpoint_every=2)(
        path, name="train", id="source", sinks=["tensorboard"]
    )
    return path


def figures(logdir: Path) -> list[tuple[str, int, float]]:
    return [
        (one.name, one.step, one.wall_time)
        for one in read_board(logdir)
        if one.kind == "figure"
    ]


@pytest.mark.slow  # trains, replays and draws
def test_it_appears_in_the_trackers_of_the_run(root: Path) -> None:
    before = [one for one in read_board(root / "tensorboard") if one.kind != "figure"]
    assert replay(root) == 0
    after = [one for one in read_board(root / "tensorboard") if one.kind != "figure"]
    drawn = Store(root).run("source")["drawn"]
    expected = [("drawn", result.step, result.wall_time) for result in drawn]
    shown = figures(root / "tensorboard")
    assert [one[:2] for one in shown] == [("drawn", 2), ("drawn", 4)]
    # An event keeps its time as a double, to the last bit.
    assert shown == expected
    assert sorted(map(repr, before)) == sorted(map(repr, after))
    # The second time nothing is added.
    assert replay(root) == 0
    assert figures(root / "tensorboard") == expected


@pytest.mark.slow  # trains, replays and starts wandb
@pytest.mark.timeout(180)
def test_it_appears_in_wandb_when_somebody_agrees(
    root: Path, wandb_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(root, "--to", "wandb") == 2
    assert "--yes" in capsys.readouterr().err
    assert "drawn" not in Store(root).run("source").analyses
    assert not list(wandb_dir.rglob("*.wandb"))
    assert replay(root, "--to", "wandb", "--yes") == 0
    (run,) = read_runs(wandb_dir)
    steps = [step for step, _ in run.with_step("analysis/drawn")]
    assert steps == [2, 4]


@pytest.mark.slow  # trains and replays
def test_it_can_stay_in_the_ledger(root: Path, tmp_path: Path) -> None:
    assert replay(root, "--ledger-only") == 0
    assert Store(root).run("source")["drawn"].steps == [2, 4]
    assert figures(root / "tensorboard") == []
    # A copy of everything elsewhere is shown from there, without the model.
    moved = Path(shutil.move(root, tmp_path / "moved"))
    shutil.rmtree(moved / "checkpoints")
    with pytest.raises(SystemExit) as done:
        main(
            ["sync", "source", "--root", str(moved), "--to", f"tensorboard:{tmp_path}"]
        )
    assert done.value.code == 0
    assert [step for name, step, _ in figures(tmp_path) if name == "drawn"] == [2, 4]
