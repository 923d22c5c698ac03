"""A question asked afterwards appears in the trackers at the steps it belongs to."""

import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tests.jobs.small import Hidden
from tests.sinks.tensorboard_reader import read_board
from tests.sinks.tensorboard_server import LOADERS, serve, wait_until
from tests.sinks.wandb_place import wandb_dir as wandb_dir
from tests.sinks.wandb_reader import read_runs
from theseus_track.analysis import AnalysisBase
from theseus_track.cli import main
from theseus_track.sinks import Changes
from theseus_track.sinks.tensorboard.events import event_files, read_events
from theseus_track.sinks.tensorboard.tags import figure_tag
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


def figures(logdir: Path) -> list[tuple[str, int, float]]:
    return [
        (one.name, one.step, one.wall_time)
        for one in read_board(logdir)
        if one.kind == "figure"
    ]


def events(root: Path) -> list[tuple[int, tuple[str, ...]]]:
    """Return step and tags of all events that are shown of the run."""
    return [
        (event.step, tuple(value.tag for value in event.summary.value))
        for folder in (root / "tensorboard").rglob("*")
        if folder.is_dir()
        for path in event_files(folder)
        for event in read_events(path)
        if event.summary.value
    ]


@pytest.mark.slow  # trains, replays and draws
def test_it_appears_in_the_trackers_of_the_run(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [one for one in read_board(root / "tensorboard") if one.kind != "figure"]
    counted = events(root)
    # The second time its first step comes late; the third time nothing is added.
    for words, appended, begun in ((["--latest"], 1, 1), ([], 1, 0), ([], 0, 0)):
        capsys.readouterr()
        assert replay(root, *words) == 0
        told = capsys.readouterr().out
        # What was announced is what was written, and nothing went away.
        counts = {"events appended": appended, "tags begun": begun}
        line = str(Changes(where=str(root / "tensorboard" / "train"), counts=counts))
        assert (line in told) == bool(appended), told
        assert ("is made anew, sorted by step" in told) == (begun < appended)
        assert len(events(root)) - len(counted) == appended
        assert set(events(root)) >= set(counted)
        counted = events(root)
    after = [one for one in read_board(root / "tensorboard") if one.kind != "figure"]
    drawn = Store(root).run("source")["drawn"]
    expected = [("drawn", result.step, result.wall_time) for result in drawn]
    shown = figures(root / "tensorboard")
    assert [one[:2] for one in shown] == [("drawn", 2), ("drawn", 4)]
    # An event keeps its time as a double, to the last bit.
    assert shown == expected
    assert sorted(map(repr, before)) == sorted(map(repr, after))
    where = ("train/theseus", figure_tag("drawn", ""))
    for loader in LOADERS:
        with serve(root / "tensorboard", loader) as board:
            wait_until(lambda: board.steps(*where) == [2, 4], 60, "not all is served")
            served = board.images(*where)
        assert [("drawn", step, time) for step, time, _ in served] == expected


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
def test_it_can_stay_in_the_ledger(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The training has ended, so following it ends as well.
    assert replay(root, "--ledger-only", "--follow") == 0
    told = capsys.readouterr()
    assert told.err.count("computed: 2, 4\n") == 1
    assert told.out.count("2 steps computed, 0 needed nothing.\n") == 1
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
