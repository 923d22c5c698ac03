"""Trainings killed at any moment: the ledger has what it promised, the trackers all."""

import json
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import wandb

from tests.sinks.tensorboard_reader import read_board
from tests.sinks.wandb_place import offline_environment
from tests.sinks.wandb_place import wandb_dir as wandb_dir
from tests.sinks.wandb_reader import read_runs
from theseus_track.sinks import sync
from theseus_track.store import Run, Store, verify

KILLED = Path(__file__).with_name("kill_process.py")


def kill(directory: Path, how: str, moments: list[str]) -> list[int]:
    """Kill a training at each moment; return the steps that were acknowledged."""
    done = subprocess.run(
        [sys.executable, str(KILLED), str(directory), how, *moments],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        cwd=directory,
        env=offline_environment(directory),
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_ledger(directory: Path, acknowledged: int) -> Run | None:
    """Check that what was acknowledged is readable; None when nothing was begun."""
    root = directory / "results"
    runs = Store(root).runs() if root.is_dir() else []
    if not runs:
        assert acknowledged == -1
        return None
    assert verify(root) == []
    (run,) = runs
    steps = list(range(acknowledged + 1))
    assert [row.step for row in run.metrics()][: acknowledged + 1] == steps
    results = {result.step: result.table for result in run["table"]} if steps else {}
    assert [results[step] for step in steps] == [{"step": step} for step in steps]
    return run


def check_board(directory: Path, run: Run) -> None:
    """Check that TensorBoard shows the whole ledger, each thing once."""
    found = Counter((one.kind, one.step) for one in read_board(directory / "board"))
    assert found == _expected(run)


def check_wandb(directory: Path, run: Run) -> None:
    """Check that W&B shows the whole ledger, each record once by its identity."""
    expected = set(_expected(run))
    deadline = time.monotonic() + 20.0
    # `finish` may return before the file is complete (wandb 0.31).
    while (found := _shown_in_wandb(directory)) != expected:
        assert time.monotonic() < deadline, expected ^ found
        time.sleep(0.05)


def _shown_in_wandb(directory: Path) -> set[tuple[str, int]]:
    """Return kind and step of what is shown; fail where two records share them."""
    found: dict[tuple[str, int], str] = {}
    for one in read_runs(directory, finished=False):
        for row in one.rows:
            for kind, key, step in (
                ("json", "analysis/table/json", "theseus/step"),
                ("metric", "loss", "theseus/train_step"),
            ):
                if key in row:
                    records = set(row["theseus/records"].split())
                    known = found.setdefault((kind, row[step]), " ".join(records))
                    assert records & set(known.split()), (kind, row[step])
    return set(found)


def _expected(run: Run) -> Counter[tuple[str, int]]:
    tables = run["table"].steps if run.analyses else []
    return Counter(
        [("json", step) for step in tables]
        + [("metric", row.step) for row in run.metrics()]
    )


def check_all(directory: Path, acknowledged: int) -> None:
    """Check the ledger; then deliver the rest, and check the trackers."""
    run = check_ledger(directory, acknowledged)
    if run is None:
        return
    # Killed before its first line, a writer is known by its files alone.
    assert run.state != "running" or not list(run.records())
    report = sync("killed", root=directory / "results")
    assert report.complete, str(report)
    if "tensorboard" in run.info.sinks:
        check_board(directory, run)
    if "wandb" in run.info.sinks:
        check_wandb(directory, run)
    again = sync("killed", root=directory / "results")
    assert all(sink.delivered == 0 for sink in again.sinks), str(again)


def random_moments(count: int) -> list[str]:
    chance = random.Random(11)
    return [f"{chance.uniform(0.0, 3.0):.3f}" for _ in range(count)]


@pytest.mark.slow  # kills four processes that start W&B's own
def test_a_training_with_three_sinks_may_be_killed_at_any_moment(
    tmp_path: Path, wandb_dir: Path
) -> None:
    _check_random_kills(tmp_path, 4)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_training_with_three_sinks_may_be_killed_at_fifty_moments(
    tmp_path: Path, wandb_dir: Path
) -> None:
    _check_random_kills(tmp_path, 50)


def _check_random_kills(tmp_path: Path, count: int) -> None:
    place = tmp_path / "killed"
    place.mkdir()
    moments = random_moments(count)
    for number, acknowledged in enumerate(kill(place, "after", moments)):
        there = place / str(number)
        wandb.setup(wandb.Settings(root_dir=str(there), mode="offline"))
        check_all(there, acknowledged)


@pytest.mark.slow  # kills eight processes that start W&B's own
def test_a_training_may_be_killed_between_any_two_rows_of_wandb(
    tmp_path: Path, wandb_dir: Path
) -> None:
    place = tmp_path / "killed"
    place.mkdir()
    last = kill(place, "row", [str(number) for number in range(1, 9)])
    assert last[0] == -1, "nothing can be shown before the first row"
    assert last[-1] == 2, "more rows than moments"
    for number, acknowledged in enumerate(last):
        there = place / str(number)
        wandb.setup(wandb.Settings(root_dir=str(there), mode="offline"))
        check_all(there, acknowledged)


@pytest.mark.slow  # kills sixty processes, one at each of its writes
def test_a_training_may_be_killed_between_any_two_writes(tmp_path: Path) -> None:
    moments = [str(number) for number in range(1, 61)]
    last = kill(tmp_path, "at", moments)
    assert last[0] == -1, "nothing can be acknowledged before the first write"
    assert last[-1] == 2, "more writes than moments"
    for number, acknowledged in enumerate(last):
        check_all(tmp_path / str(number), acknowledged)
