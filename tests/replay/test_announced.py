"""What a replay announces for W&B is what is written there."""

from pathlib import Path
from typing import Any

import click.testing
import pytest
import wandb

from tests.replay.test_shown import FILE
from tests.sinks.wandb_backend import ENTITY, Backend
from tests.sinks.wandb_backend import backend as backend
from tests.sinks.wandb_reader import WandbRun
from tests.sinks.wandb_user import three_unstepped_rows
from theseus_track.cli import main
from theseus_track.sinks import Changes

MEANS = "tests.replay.test_replay:Means"
MINE = f"wandb:{ENTITY}/mine/w1"


def replay(root: Path, *words: str, code: int = 0) -> str:
    """Call the command; return what it says."""
    result = click.testing.CliRunner().invoke(
        main, ["replay", "train", "--root", str(root), *words]
    )
    assert result.exit_code == code, result.output
    return result.output


def written(before: WandbRun | None, after: WandbRun) -> str:
    """Say what was done to a run, in the words of the plan; nothing is deleted."""
    old = [] if before is None else before.rows
    assert after.rows[: len(old)] == old
    known = set() if before is None else {*before.steps_of, *before.hidden}
    there = {*after.steps_of, *after.hidden}
    assert there >= known
    summary: dict[str, Any] = {} if before is None else before.summary
    changed = {k for k in after.summary if after.summary[k] != summary.get(k)}
    assert {key for key in summary if key not in after.summary} == set()
    counts = {
        "rows appended": len(after.rows) - len(old),
        "definitions declared": len(there - known),
        "definitions declared again": len(known),
        # What W&B itself notes of every run begins with a "_".
        "summary keys set": len({k for k in changed if not k.startswith("_")}),
    }
    how = "your run" if before is not None else "a companion run"
    return str(Changes(where=f"{how} {ENTITY}/mine/{after.id}", counts=counts))


@pytest.fixture
def finished(backend: Backend) -> WandbRun:
    """A W&B run that somebody has logged and finished, without us."""
    mine = wandb.init(project="mine", id="w1", reinit="create_new")
    mine.define_metric("train/step", hidden=True)
    mine.define_metric("loss", step_metric="train/step")
    for step in range(3):
        three_unstepped_rows(mine, step)
    mine.finish()
    return backend.runs()["w1"]


@pytest.mark.slow  # trains, replays and starts wandb
@pytest.mark.timeout(180)
def test_rows_of_a_run_that_was_never_ours_and_of_one_beside_it(
    root: Path, backend: Backend, finished: WandbRun
) -> None:
    # Drawn once before, so that the plan knows what it draws: a table and curves.
    replay(root, "-a", MEANS, "--step", "2", "--ledger-only")
    first = ("-a", MEANS, "-a", FILE, "--to", MINE, "--step", "2")
    assert "--companion" in replay(root, *first, code=2)
    # Also where nothing is to be computed, and only what waits is to be delivered.
    assert "--companion" in replay(root, "-a", MEANS, *first[4:], code=2)
    told = replay(root, *first, "--companion", "--dry-run")
    assert "drawn counts as one figure" in told
    assert backend.runs() == {"w1": finished}
    replay(root, *first, "--companion")
    runs = backend.runs()
    assert runs["w1"] == finished
    assert f"  {MINE}: {written(None, runs['w1-analysis'])}" in told
    assert [s for s, _ in runs["w1-analysis"].with_step("analysis/drawn")] == [2]
    told = replay(root, *first[:-2], "--yes")
    after = backend.runs()
    assert f"  {MINE}: {written(finished, after['w1'])}" in told
    assert [step for step, _ in after["w1"].with_step("analysis/drawn")] == [4]
    assert after["w1-analysis"] == runs["w1-analysis"]
    # Nothing is left, so that there is nothing to ask.
    assert "rows appended" not in replay(root, *first)
