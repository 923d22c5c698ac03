"""The commands `jobs` and `run`: what they print, and how they refuse."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.jobs.small import the_run
from theseus_track.cli import main

JOB = """
from tests.jobs.small import Small
from theseus_track.jobs import job

class Mine(Small):
    pass
"""

Call = Callable[..., Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mine.py").write_text(JOB)
    return lambda *words: CliRunner().invoke(main, list(words))


def test_jobs_lists_key_class_kind_and_file(call: Call) -> None:
    rows = {row["key"]: row for row in json.loads(call("jobs", "--json").stdout)}
    trainer = rows["demo/gpt/train-with-analysis"]
    assert trainer["class"] == "theseus_track.demo.analyses:GPTWithAnalysis"
    assert trainer["kind"] == "trainer"
    assert Path(trainer["where"]).name == "analyses.py"
    assert rows["demo/gpt/activations"]["kind"] == "analysis"


def test_jobs_prints_a_row_for_each_key(call: Call) -> None:
    printed = call("jobs").stdout
    assert "demo/gpt/pretrain " in printed
    assert printed.startswith("KEY")


@pytest.mark.slow  # trains
def test_run_trains_a_class_of_a_file(call: Call, tmp_path: Path) -> None:
    done = call(
        *("run", "mine.py:Mine", "--root", "here", "--name", "n", "--project", "p"),
        *("--set", "steps=3", "--set", "keep=1", "--to", ""),
    )
    assert done.exit_code == 0, done.output
    assert "eval/loss" in done.stdout
    info = the_run(tmp_path / "here").info
    assert (info.name, info.project, info.config["steps"]) == ("n", "p", 3)
    assert info.job == f"{tmp_path / 'mine.py'}:Mine"
    assert info.sinks == {}

    more = call("run", "mine.py:Mine", "--resume", "n", "--root", "here", "--to", "")
    assert more.exit_code == 0, more.output
    assert [row.step for row in the_run(tmp_path / "here").metrics()][-1] == 6


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["demo/gpt/pretran"], "'demo/gpt/pretrain'"),
        (["mine.py:Yours"], "'Mine'"),
        (["yours.py:Mine"], "'mine.py'"),
        (["demo/gpt/activations"], "is an analysis"),
        (["mine.py:Mine", "--set", "stepz=3"], "'steps'"),
        (["mine.py:Mine", "--set", "steps=three"], "an integer"),
        (["mine.py:Mine", "--set", "steps"], "key=value"),
        (["mine.py:Mine", "--set", "steps=0"], "steps=0"),
        (["mine.py:Mine", "--to", "tensorbord"], "'tensorboard'"),
        (["mine.py:Mine", "--resume", "nothing"], "ledger"),
    ],
)
def test_run_refuses_in_one_line_and_writes_nothing(
    call: Call, tmp_path: Path, words: list[str], named: str
) -> None:
    done = call("run", *words)
    assert done.exit_code == 2
    assert named in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("Error: ")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("command", ["run", "demo"])
def test_a_root_that_cannot_be_written_is_refused(
    call: Call, tmp_path: Path, command: str
) -> None:
    (tmp_path / "file").write_text("")
    words = {"run": ["run", "mine.py:Mine"], "demo": ["demo", "--steps", "1"]}[command]
    done = call(*words, "--root", "file/below")
    assert done.exit_code == 2
    assert "is not a directory" in done.stderr


INTERRUPTED = (
    JOB
    + """
    def batches(self, split):
        for index, batch in enumerate(super().batches(split)):
            if split == "train" and index == STOP:
                raise KeyboardInterrupt
            yield batch
"""
)


@pytest.mark.slow  # trains
@pytest.mark.parametrize(("stop", "told"), [(4, "step 3"), (1, "no checkpoint")])
def test_an_interrupted_training_says_what_is_kept(
    call: Call, tmp_path: Path, stop: int, told: str
) -> None:
    name = f"interrupted_{stop}.py"
    (tmp_path / name).write_text(INTERRUPTED.replace("STOP", str(stop)))
    done = call("run", f"{name}:Mine", "--root", "here", "--to", "")
    assert done.exit_code == 130
    run = the_run(tmp_path / "here")
    assert run.state == "stopped"
    assert run.last_step == stop
    assert f"run {run.id}" in done.stderr
    assert told in done.stderr
    resumable = f"--resume {run.id} --root {tmp_path / 'here'}" in done.stderr
    assert resumable == (stop == 4)
    assert "Traceback" not in done.stderr
