"""Where a run that is continued is shown, and how long its end waits for that."""

from pathlib import Path

import pytest
import wandb

from tests.sinks.tensorboard_reader import read_board
from tests.sinks.wandb_place import wandb_dir as wandb_dir
from tests.sinks.wandb_reader import read_run, read_runs
from theseus_track import open_run
from theseus_track.errors import BadInput
from theseus_track.sinks import MemorySink, sync
from theseus_track.sinks.conformance.faults import BlocksOnClose

TABLE = "analysis/facts/json"


def attempt(root: Path, step: int, **trackers: object) -> None:
    """Log one result and one row of metrics, as a training does that was resumed."""
    run = open_run(root, id="r1", **trackers)  # type: ignore[arg-type]
    run.log_metrics({"loss": 1.0}, step=step)
    run.log_result("facts", {"n": step}, step=step)
    report = run.close()
    assert report.complete, str(report)


def steps_in(board: Path, kind: str = "json") -> list[int]:
    return sorted(one.step for one in read_board(board) if one.kind == kind)


def test_without_a_tracker_it_goes_on_in_those_that_it_began_with(
    tmp_path: Path,
) -> None:
    root, mine = tmp_path / "root", tmp_path / "mine"
    attempt(root, 1, tensorboard=mine)
    attempt(root, 2)
    assert steps_in(mine / "theseus") == [1, 2]
    assert steps_in(mine, "metric") == [], "the metrics there are the user's"
    assert sync("r1", root=root).sinks[0].delivered == 0


def test_a_name_alone_means_the_place_that_it_began_with(tmp_path: Path) -> None:
    root, logs = tmp_path / "root", tmp_path / "logs"
    attempt(root, 1, sinks=[f"tensorboard:{logs}"])
    attempt(root, 2, sinks=["tensorboard"])
    attempt(root, 3, sinks=[f"tensorboard:{tmp_path / 'other'}"])
    assert steps_in(logs) == [1, 2]
    assert steps_in(tmp_path / "other") == [3]


def test_a_tracker_that_nothing_opens_again_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink = MemorySink()
    sink.name = "lines"
    attempt(tmp_path, 1, sinks=[sink])
    attempt(tmp_path, 2)
    assert "'lines'" in caplog.text
    assert len(sink.items) == 2


def test_a_run_of_the_user_is_ridden_again_but_never_taken_over(
    tmp_path: Path, wandb_dir: Path
) -> None:
    root = tmp_path / "root"
    with wandb.init(project="mine", id="r1") as mine:
        attempt(root, 1, wandb=mine)
    with wandb.init(project="mine", id="again"):
        attempt(root, 2)
    attempt(root, 3)
    found = {run.id: run for run in read_runs(wandb_dir)}
    steps = {
        name: [step for step, _ in run.with_step(TABLE)] for name, run in found.items()
    }
    assert steps == {"r1": [1], "again": [2], "r1-analysis": [3]}
    assert not any(run.column("loss") for run in found.values()), "those are theirs"


def test_a_run_of_ours_goes_on(tmp_path: Path, wandb_dir: Path) -> None:
    root = tmp_path / "root"
    attempt(root, 1, sinks=["wandb:p"])
    (wandb_dir / "wandb").rename(tmp_path / "first")
    attempt(root, 2)
    second = read_run(wandb_dir)
    assert (second.id, second.run.project) == ("r1", "p")
    assert second.with_step(TABLE, "_step") == [(2, second.column(TABLE)[0])]
    assert second.with_step("loss", "theseus/train_step") == [(2, 1.0)]


def test_the_end_waits_as_long_as_the_run_was_opened_with(tmp_path: Path) -> None:
    blocked = BlocksOnClose(MemorySink())
    other = MemorySink()
    other.name = "other"
    with open_run(tmp_path, sinks=[blocked, other], close_timeout=0.5) as run:
        run.log_result("facts", {"n": 1}, step=1)
        assert run.flush()
    report = run.close()
    blocked.release.set()
    first, second = map(str, report.sinks)
    assert first.startswith("memory: 1 delivered, 0 pending, 0 failed, not closed")
    assert "has not returned from close" in first
    assert second == "other: 1 delivered, 0 pending, 0 failed"
    assert other.closed, "one that blocks does not use up the time of the others"


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "60", None, True])
def test_a_limit_that_is_none_is_refused(tmp_path: Path, seconds: object) -> None:
    with pytest.raises(BadInput, match="time limit"):
        open_run(tmp_path / "root", close_timeout=seconds)  # type: ignore[arg-type]
    assert not (tmp_path / "root").exists()
