"""A W&B run of ours, read back from its offline file."""

import dataclasses
import json
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
import wandb

from tests.sinks.wandb_place import abandon, offline_environment
from tests.sinks.wandb_place import wandb_dir as wandb_dir
from tests.sinks.wandb_reader import read_run, read_shown
from theseus_track.errors import DeliveryError
from theseus_track.records import FigureItem, RunInfo
from theseus_track.sinks import Sink, WandbSink
from theseus_track.sinks.conformance import Items, Shown, SinkConformance

FIGURE = "analysis/activations"


class TestConformance(SinkConformance):
    @pytest.fixture(autouse=True)
    def _place(self, wandb_dir: Path) -> None:
        self.directory = wandb_dir

    def make(self) -> WandbSink:
        return WandbSink()

    def abandon(self, sink: Sink) -> None:
        abandon(sink)

    def shown(self) -> list[Shown]:
        return read_shown(self.directory)


def run_info(**fields: Any) -> RunInfo:
    given = {"project": "tests", "name": "gpt", "id": "r1", "created": 0.0}
    return RunInfo(**{**given, **fields})


def opened(info: RunInfo | None = None, **settings: Any) -> WandbSink:
    sink = WandbSink(**settings)
    sink.open(info or run_info())
    return sink


def test_the_run_is_as_the_ledger_knows_it(wandb_dir: Path) -> None:
    info = run_info(
        project="a/b:c",
        id="run: 7/é",
        group="g",
        tags=("t", "x" * 100, ""),
        config={"lr": 0.1, "deep": {"a": [1]}},
    )
    sink = opened(info)
    sink.write(Items().figure(1))
    sink.close(1.0)
    found = read_run(wandb_dir)
    assert found.run.project == "a-b-c"
    assert found.run.display_name == "gpt"
    assert re.fullmatch(r"run--7---[0-9a-f]{12}", found.id)
    assert found.run.run_group == "g"
    assert list(found.run.tags) == ["t", "x" * 64]
    assert found.config["lr"] == 0.1


def test_a_companion_is_a_run_of_its_own_in_the_same_group(wandb_dir: Path) -> None:
    sink = opened(companion=True)
    sink.write(Items().figure(1))
    sink.close(1.0)
    found = read_run(wandb_dir)
    assert (found.id, found.run.run_group) == ("r1-analysis", "r1")
    assert found.run.job_type == "theseus-analysis"
    assert found.config["theseus/source_run"] == "r1"
    assert wandb.run is None


@pytest.mark.slow  # rows wait for a second before they are written
def test_rows_wait_for_a_figure_that_is_drawn_so_that_steps_are_exact(
    wandb_dir: Path,
) -> None:
    sink, items = opened(), Items()
    undrawn: list[int | None] = [5]
    sink.accompany(flush=lambda: None, close=lambda: None, undrawn=lambda: undrawn[0])
    row = items.metrics(9, {"loss": 9.0})
    for step in range(4, 9):
        sink.write(items.metrics(step, {"loss": float(step)}))
    assert sink.write(row).status == "deferred"
    time.sleep(1.3)
    assert sink.holds(row)
    undrawn[0] = None
    sink.write(items.figure(5))
    deadline = time.monotonic() + 10.0
    while sink.holds(row):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    sink.close(1.0)
    found = read_run(wandb_dir)
    steps = list(range(4, 10))
    assert found.with_step("loss", "_step") == [(s, float(s)) for s in steps]
    assert found.with_step("loss", "theseus/train_step") == [
        (step, float(step)) for step in steps
    ]
    (at,) = [row["_step"] for row in found.rows if FIGURE in row]
    assert at == 5


def test_a_figure_that_comes_after_the_patience_rides_on_a_later_row(
    wandb_dir: Path,
) -> None:
    sink, items = opened(patience=0.0), Items()
    for step in range(6):
        sink.write(items.metrics(step, {"loss": float(step)}))
    sink.write(items.figure(2))
    for step in range(6, 9):
        sink.write(items.metrics(step, {"loss": float(step)}))
    sink.close(1.0)
    found = read_run(wandb_dir)
    assert found.with_step("loss", "_step") == [(s, float(s)) for s in range(9)]
    assert [step for step, _ in found.with_step(FIGURE)] == [2]


def test_a_disabled_run_takes_nothing(
    wandb_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb.setup(wandb.Settings(mode="disabled"))
    sink = opened()
    assert sink.write(Items().figure(1)).status == "skipped"
    sink.close(1.0)
    assert not list(wandb_dir.rglob("*.wandb"))


def test_a_table_has_few_versions_and_the_last(wandb_dir: Path) -> None:
    sink, items = opened(patience=0.0), Items()
    for step in range(30):
        sink.write(items.json(step, {"head": [0, 1], "entropy": [0.5, float(step)]}))
    sink.close(1.0)
    found = read_run(wandb_dir)
    steps = [step for step, _ in found.with_step("analysis/entropy/table")]
    assert len(steps) < 20
    assert steps[-1] == 29
    _, last = found.with_step("analysis/entropy/table")[-1]
    table = json.loads((found.files / last["path"]).read_text())
    assert table["columns"] == ["head", "entropy"]
    assert table["data"] == [[0, 0.5], [1, 29.0]]
    assert len(found.column("analysis/entropy/json")) == 30


def test_at_most_twenty_numbers_of_a_value_become_curves(wandb_dir: Path) -> None:
    sink = opened()
    sink.write(Items().json(1, {f"k{n}": n for n in range(100)}))
    sink.close(1.0)
    (row,) = read_run(wandb_dir).rows
    curves = [key for key in row if key.startswith("analysis/entropy/k")]
    assert len(curves) == 20


def test_a_step_that_wandb_cannot_hold_is_refused(wandb_dir: Path) -> None:
    assert opened().write(Items().figure(2**63)).status == "failed"


def test_pixels_that_are_no_png_are_refused(wandb_dir: Path) -> None:
    sink, good = opened(), Items().figure(1)
    assert isinstance(good, FigureItem)
    receipt = sink.write(dataclasses.replace(good, png=b"GIF89a"))
    assert receipt.status == "failed"
    assert "PNG" in receipt.reason
    sink.close(1.0)


def test_writing_before_open_says_so(wandb_dir: Path) -> None:
    with pytest.raises(DeliveryError, match="not open"):
        WandbSink().write(Items().figure(1))


def test_naming_the_sink_imports_no_tracker(tmp_path: Path) -> None:
    code = "import sys, theseus_track.sinks; print('wandb' in sys.modules)"
    assert run_code(code, tmp_path).strip() == "False"


@pytest.mark.slow  # starts a process that imports wandb, and ends it without mercy
def test_what_is_older_than_a_moment_survives_the_death_of_the_process(
    tmp_path: Path,
) -> None:
    code = """
    import os, time
    from theseus_track.records import RunInfo
    from theseus_track.sinks import WandbSink
    from theseus_track.sinks.conformance import Items
    sink, items = WandbSink(), Items()
    sink.open(RunInfo(project="tests", name="gpt", id="r1", created=0.0))
    for step in range(5):
        sink.write(items.figure(step))
    sink.flush(30.0)
    time.sleep(2.0)
    os._exit(9)
    """
    run_code(code, tmp_path, status=9)
    found = read_run(tmp_path, finished=False)
    assert [step for step, _ in found.with_step(FIGURE)] == [0, 1, 2, 3, 4]


def run_code(code: str, tmp_path: Path, *, status: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=tmp_path,
        env=offline_environment(tmp_path),
    )
    assert done.returncode == status, done.stderr
    return done.stdout
