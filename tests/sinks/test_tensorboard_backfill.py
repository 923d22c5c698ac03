"""Late steps in TensorBoard: one sorted file where nobody writes, else a sub-run."""

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.sinks.tensorboard_reader import read_board
from tests.store.ledgers import run_info, writer
from theseus_track.records import MetricsRecord
from theseus_track.run import open_run
from theseus_track.sinks import SyncReport, TensorBoardSink, sync
from theseus_track.sinks.conformance import Shown, tiny_png, wall_time
from theseus_track.sinks.tensorboard import rebuild as rebuilding
from theseus_track.sinks.tensorboard.events import EventFile
from theseus_track.store import LedgerWriter, NewPart, NewResult, Store

PROJECT = Path(__file__).parents[2]


def figure(step: int, shade: int | None = None, name: str = "a") -> NewResult:
    png = tiny_png(step if shade is None else shade)
    part = NewPart(part="", kind="figure", blobs={"png": png, "pdf": b"%PDF-1.4"})
    return NewResult(
        key="my/a", name=name, step=step, wall_time=wall_time(step), parts=(part,)
    )


def row(step: int, loss: float) -> MetricsRecord:
    return MetricsRecord(step=step, wall_time=wall_time(step), metrics={"loss": loss})


def fill(ledger: LedgerWriter, steps: Sequence[int]) -> None:
    for step in steps:
        ledger.append(figure(step), row(step, float(step)))


def deliver(root: Path, logdir: Path | None = None) -> SyncReport:
    return sync("r1", root=root, to=[f"tensorboard:{logdir or root / 'logs'}"])


def event_files(logdir: Path) -> list[str]:
    return sorted(str(p.parent.relative_to(logdir)) for p in logdir.rglob("*tfevents*"))


def figures(logdir: Path) -> list[tuple[int, object, float]]:
    shown = [one for one in read_board(logdir) if one.kind == "figure"]
    return [(one.step, one.content, one.wall_time) for one in shown]


def expected(*steps: int) -> list[tuple[int, object, float]]:
    return [(step, tiny_png(step), wall_time(step)) for step in steps]


def test_a_backfill_makes_one_sorted_file_with_the_true_times(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    with writer(tmp_path) as ledger:
        fill(ledger, (10, 20, 40))
    assert deliver(tmp_path).notes == ()
    with writer(tmp_path, purpose="replay") as ledger:
        fill(ledger, (5, 15, 30))
    report = deliver(tmp_path)
    assert report.complete
    assert report.sinks[0].delivered == 6
    assert all("restart TensorBoard" in note for note in report.notes)
    assert event_files(logs) == ["train-gpt", "train-gpt/theseus"]
    assert figures(logs) == expected(5, 10, 15, 20, 30, 40)
    losses = [(one.step, one.content) for one in read_board(logs) if one.name == "loss"]
    assert losses == [(step, float(step)) for step in (5, 10, 15, 20, 30, 40)]
    before = {path: path.read_bytes() for path in logs.rglob("*") if path.is_file()}
    assert deliver(tmp_path).sinks[0].delivered == 0
    assert before == {p: p.read_bytes() for p in logs.rglob("*") if p.is_file()}


def test_steps_in_order_are_appended(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        fill(ledger, (10, 20))
    deliver(tmp_path)
    with writer(tmp_path, resumed_at=21) as ledger:
        fill(ledger, (30,))
    assert deliver(tmp_path).notes == ()
    assert figures(tmp_path / "logs") == expected(10, 20, 30)


def test_a_result_drawn_again_replaces_the_older_one(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        fill(ledger, (10, 20))
    deliver(tmp_path)
    with writer(tmp_path, purpose="replot") as ledger:
        ledger.append(figure(10, shade=99))
    assert deliver(tmp_path).complete
    shown = figures(tmp_path / "logs")
    assert [content for _, content, _ in shown] == [tiny_png(99), tiny_png(20)]


def test_what_a_newer_attempt_replaced_is_no_longer_shown(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        fill(ledger, (110, 120, 124))
    deliver(tmp_path)
    with writer(tmp_path, resumed_at=120) as ledger:
        ledger.append(figure(120, shade=7), row(120, 7.0))
    deliver(tmp_path)
    shown = figures(tmp_path / "logs")
    assert [(step, content) for step, content, _ in shown] == [
        (110, tiny_png(110)),
        (120, tiny_png(7)),
    ]


def test_while_the_training_runs_late_steps_go_beside(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        fill(ledger, (10, 20))
        deliver(tmp_path)
        with writer(tmp_path, purpose="replay") as replayed:
            replayed.append(figure(15))
        assert Store(tmp_path).run("r1").state == "running"
        report = deliver(tmp_path)
        assert report.complete
        assert "theseus-replay-1" in report.notes[0]
        assert "train-gpt/theseus-replay-1" in event_files(tmp_path / "logs")
    # Afterwards the next sync brings them together.
    with writer(tmp_path, purpose="replay") as replayed:
        replayed.append(figure(25))
    deliver(tmp_path)
    assert event_files(tmp_path / "logs") == ["train-gpt", "train-gpt/theseus"]
    assert not (tmp_path / "logs" / "train-gpt" / "theseus-replay-1").exists()
    assert figures(tmp_path / "logs") == expected(10, 15, 20, 25)


def test_while_another_process_has_the_directory_late_steps_go_beside(
    tmp_path: Path,
) -> None:
    with writer(tmp_path) as ledger:
        fill(ledger, (10, 20))
    other = TensorBoardSink(tmp_path / "logs")
    other.open(run_info())
    deliver(tmp_path)
    assert "train-gpt/theseus-replay-1" in event_files(tmp_path / "logs")
    other.close(1.0)


def test_what_others_wrote_is_never_touched(tmp_path: Path) -> None:
    theirs = tmp_path / "logs" / "train-gpt" / "events.out.tfevents.1.host.theirs"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"")
    with writer(tmp_path) as ledger:
        fill(ledger, (10,))
    deliver(tmp_path)
    with writer(tmp_path, purpose="replay") as ledger:
        fill(ledger, (5,))
    deliver(tmp_path)
    assert theirs.exists()
    assert figures(tmp_path / "logs") == expected(5, 10)


def test_the_log_directory_of_the_user_keeps_its_own_curves(tmp_path: Path) -> None:
    settings = {"logdir": str(tmp_path / "logs"), "run": "", "metrics": False}
    info = run_info(sinks={"tensorboard": settings})
    for purpose, steps in (("live", (10, 20)), ("replay", (5,))):
        with LedgerWriter.create(tmp_path, info, purpose=purpose) as ledger:
            fill(ledger, steps)
        report = sync("r1", root=tmp_path)
        assert report.complete
        assert report.sinks[0].sink == "tensorboard"
    assert report.sinks[0].skipped == 1
    assert event_files(tmp_path / "logs") == ["theseus"]
    assert figures(tmp_path / "logs") == expected(5, 10, 20)
    assert sync("r1", root=tmp_path).sinks[0].skipped == 0


def test_the_place_of_the_run_has_one_name(tmp_path: Path) -> None:
    info = run_info(sinks={"tensorboard": {"logdir": str(tmp_path / "logs")}})
    with LedgerWriter.create(tmp_path, info) as ledger:
        fill(ledger, (10,))
    assert deliver(tmp_path).sinks[0].sink == "tensorboard"
    assert sync("r1", root=tmp_path).sinks[0].delivered == 0
    elsewhere = deliver(tmp_path, tmp_path / "elsewhere")
    assert elsewhere.sinks[0].sink == f"tensorboard:{tmp_path / 'elsewhere'}"
    assert elsewhere.sinks[0].delivered == 2


def test_without_a_place_it_is_below_the_root(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        fill(ledger, (10,))
    assert sync("r1", root=tmp_path, to=["tensorboard"]).complete
    assert figures(tmp_path / "tensorboard") == expected(10)


@pytest.mark.slow  # dies in processes of their own
@pytest.mark.parametrize("moment", ["write", "plan", "replace", "delete"])
def test_a_death_at_any_moment_of_a_rebuild_loses_nothing(
    tmp_path: Path, moment: str
) -> None:
    with writer(tmp_path) as ledger:
        fill(ledger, (10, 20))
    deliver(tmp_path)
    with writer(tmp_path, purpose="replay") as ledger:
        ledger.append(figure(15))
    code = f"import {__name__} as t; t.die_at({moment!r}, {str(tmp_path)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=False)
    assert done.returncode == 9
    found = {step for step, *_ in figures(tmp_path / "logs")}
    assert found >= {10, 20}
    deliver(tmp_path)
    assert figures(tmp_path / "logs") == expected(10, 15, 20)
    assert event_files(tmp_path / "logs") == ["train-gpt", "train-gpt/theseus"]
    left = {p.name for p in (tmp_path / "logs").rglob(".rebuild*")}
    assert left == set()


def die_at(moment: str, root: str) -> None:
    """Deliver and die; runs in a process of its own."""

    def die(*_: Any, **__: Any) -> None:
        os._exit(9)

    write_plan = rebuilding._write_plan

    def plan_and_die(directory: Path, made: str, replaced: Sequence[Path]) -> None:
        write_plan(directory, made, replaced)
        die()

    with pytest.MonkeyPatch.context() as patch:
        if moment == "write":
            patch.setattr(EventFile, "sync", die)
        elif moment == "plan":
            patch.setattr(rebuilding, "_write_plan", die)
        elif moment == "replace":
            patch.setattr(rebuilding, "_write_plan", plan_and_die)
        else:
            patch.setattr(rebuilding, "finish_rebuild", die)
        deliver(Path(root))


def test_a_full_disk_during_a_rebuild_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writer(tmp_path) as ledger:
        fill(ledger, (10, 20))
    deliver(tmp_path)
    with writer(tmp_path, purpose="replay") as ledger:
        ledger.append(figure(15))
    before = event_files(tmp_path / "logs")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(rebuilding, "_write_plan", full)
        report = deliver(tmp_path)
    assert not report.complete
    assert "No space left" in str(report)
    assert event_files(tmp_path / "logs") == before
    assert figures(tmp_path / "logs") == expected(10, 20)
    assert deliver(tmp_path).complete
    assert figures(tmp_path / "logs") == expected(10, 15, 20)


def test_of_one_tag_and_step_the_last_is_shown(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        ledger.append(row(10, 1.0), row(20, 1.0), row(20, 2.0))
    deliver(tmp_path)
    shown: list[Shown] = read_board(tmp_path / "logs")
    assert [(one.step, one.content) for one in shown] == [(10, 1.0), (20, 2.0)]


def test_a_training_that_goes_on_replaces_what_it_does_again(tmp_path: Path) -> None:
    def train(steps: Sequence[int], loss: float, **options: Any) -> None:
        sinks = [f"tensorboard:{tmp_path / 'logs'}"]
        with open_run(tmp_path, name="gpt", id="r1", sinks=sinks, **options) as run:
            for step in steps:
                run.log_metrics({"loss": loss}, step=step)
                run.log_result("facts", {"loss": loss}, step=step)
                run.flush()

    train((110, 120, 124), 1.0)
    train((120, 130), 2.0, resumed_at=120)
    # One that does not know in advance where it goes on says it with its first step.
    train((130, 140), 3.0)
    assert set(event_files(tmp_path / "logs")) == {"gpt", "gpt/theseus"}
    expected = [(110, 1.0), (120, 2.0), (130, 3.0), (140, 3.0)]
    shown = read_board(tmp_path / "logs")
    metrics = [(one.step, one.content) for one in shown if one.kind == "metric"]
    values: list[Any] = [one for one in shown if one.kind == "json"]
    assert metrics == expected
    assert [(one.step, one.content["loss"]) for one in values] == expected
    older = Store(tmp_path).run("r1").results("facts", 120, superseded=True)
    assert [result.superseded for result in older] == [True, False]
    assert sync("r1", root=tmp_path).sinks[0].delivered == 0


def test_late_steps_of_a_training_that_goes_on_have_the_file_made_anew_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writer(tmp_path) as ledger:
        fill(ledger, (10, 20))
    deliver(tmp_path)
    made: list[Path] = []

    def noted(first: Path, later: Sequence[Path], drawn: Iterable[Any]) -> None:
        made.append(first)
        rebuilding.rebuild(first, later, drawn)

    monkeypatch.setattr("theseus_track.sinks.tensorboard.board.rebuild", noted)
    with open_run(
        tmp_path, id="r1", sinks=[f"tensorboard:{tmp_path / 'logs'}"], resumed_at=15
    ) as run:
        for step in (15, 25, 12, 13):
            run.log_metrics({"loss": 1.0}, step=step)
            run.flush()
    assert made == [tmp_path / "logs" / "train-gpt"]
    shown = [o for o in read_board(tmp_path / "logs") if o.kind == "metric"]
    assert [one.step for one in shown] == [10, 15, 25, 12, 13]
    assert set(event_files(tmp_path / "logs")) == {
        "train-gpt",
        "train-gpt/theseus",
        "train-gpt/theseus-metrics-1",
    }
