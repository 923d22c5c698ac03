"""The examples run as they stand and leave what they promise."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from theseus_track.store import Store

ROOT = Path(__file__).resolve().parents[2]

# The tutorial's own words; only the imports above them may differ.
TUTORIAL = """
@analysis("my/gpt/activations")
class Activations(AnalysisBase, PretrainGPT):
    TARGET = SelfAttention
    NAME = "activations"

    def select(self, paths):
        return paths[0]  # First discovered attention module.

    def analyze(self, layer, inputs):
        return inputs.x[0, :64, :128]  # First sample; crop tokens/features.

    def plot(self, values):
        return self.heatmap(values, xlabel="Feature", ylabel="Token")


@job("my/gpt/train-with-analysis")
class GPTWithAnalysis(PretrainGPT):
    ANALYSIS = [Activations]
"""

ON_A_CHECKPOINT = """
with quick("./results") as q:
    q.build(Activations, "inspect")
    q.find().spec(run="train-gpt").checkpoint().latest().resume()
    analysis_job = q.create()
    analysis_job()
"""


def _run(example: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / example)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert "WARNING" not in done.stderr
    return done.stdout


@pytest.mark.slow  # trains in a process of its own
def test_a_loop_of_ones_own(tmp_path: Path) -> None:
    printed = _run("own_loop.py", tmp_path)
    series = Store(tmp_path / "results").run("own-loop")["activations"]
    assert series.steps == [20, 40, 60]
    assert series.latest.shapes == {"": (64, 128)}
    assert [Path(file).suffix for file in series.latest.files] == [".png", ".pdf"]
    assert "theseus-track show own-loop activations" in printed


@pytest.mark.slow  # trains in two processes of its own
def test_two_processes_train_as_one(tmp_path: Path) -> None:
    _run("two_processes.py", tmp_path)
    run = Store(tmp_path / "results").run("two-processes")
    assert run["units"].steps == [10, 20, 30]
    # Eight examples of each process.
    assert run["units"].latest.shapes == {"": (16, 16)}
    assert [Path(file).suffix for file in run["units"].latest.files] == [".png", ".pdf"]
    assert len([row for row in run.metrics() if "train/loss" in row.metrics]) == 30
    assert len(list(run.dir.glob("*.jsonl"))) == 1


def test_the_example_of_two_processes_is_short() -> None:
    lines = (ROOT / "examples" / "two_processes.py").read_text().splitlines()
    assert len(lines) < 80


def test_the_own_loop_is_short() -> None:
    lines = (ROOT / "examples" / "own_loop.py").read_text().splitlines()
    assert len(lines) < 60


@pytest.mark.slow  # trains in a process of its own
def test_the_tutorial_with_a_trainer(tmp_path: Path) -> None:
    _run("train_with_analysis.py", tmp_path)
    run = Store(tmp_path / "results").run("train-gpt")
    assert run["activations"].steps == [20, 40, 60]
    assert run["activations"].latest.key == "my/gpt/activations"
    assert run.info.job == f"{ROOT / 'examples' / 'train_with_analysis.py'}:" + (
        "GPTWithAnalysis"
    )
    # The document's own words on a saved checkpoint; only the imports differ.
    tutorial = (ROOT / "examples" / "train_with_analysis.py").read_text()
    (tmp_path / "my_analysis.py").write_text(tutorial)
    program = tmp_path / "inspect_it.py"
    program.write_text(
        "from my_analysis import Activations\n"
        "from theseus_track.quick import quick\n" + ON_A_CHECKPOINT
    )
    _run(program, tmp_path)
    inline, again = run.refresh().results("activations", 60, superseded=True)
    assert (inline.source.kind, again.source.kind) == ("live", "replay")
    np.testing.assert_array_equal(np.asarray(again.values), np.asarray(inline.values))


def test_the_tutorial_is_word_for_word_but_for_the_imports() -> None:
    assert TUTORIAL in (ROOT / "examples" / "train_with_analysis.py").read_text()


@pytest.mark.slow  # reads 90 MB of weights in a process of its own
def test_a_pretrained_encoder(tmp_path: Path) -> None:
    printed = _run("minilm.py", tmp_path)
    matrix = np.loadtxt(
        io.StringIO(re.sub(r"[][]", "", printed[printed.rindex("[[") :]))
    )
    # A cat and a kitten on mats are alike, and nothing like the stock market.
    assert matrix[0, 1] > 0.5 > 0.2 > max(matrix[0, 2], matrix[1, 2])
    run = Store(tmp_path / "results").run("minilm")
    weights: Any = run["attention_pattern"].latest.values
    assert weights.shape == (12, 8, 8)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    entropies: Any = run["attention_entropy"].latest.values
    assert len(entropies) == 6
    for row in entropies.values():
        assert (row["entropy"] >= 0).all()
        assert (row["entropy"] <= np.log(8)).all()
