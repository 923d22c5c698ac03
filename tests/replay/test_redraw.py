"""replot: from stored values alone; older drawings stay; what failed is named."""

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click.testing
import jax
import numpy as np
import pytest

from tests.jobs.small import Hidden, SmallWithAnalysis
from tests.jobs.small import Outputs as Trained
from tests.store.ledgers import new_figure, new_values, writer
from theseus_track.analysis import AnalysisBase, draw_hash, measure_hash
from theseus_track.cli import main
from theseus_track.errors import AnalysisFault, BadInput, LedgerError, NotFound
from theseus_track.replay import Redrawn, Steps, replot
from theseus_track.store import Run, Store
from theseus_track.store.claim import Claim

COMPILE = "/jax/core/compile/backend_compile_duration"


class Before(AnalysisBase):
    """What the training asked."""

    TARGET = Hidden
    NAME = "means"

    def analyze(self, layer: Hidden, inputs: Any) -> jax.Array:
        """Average."""
        output: jax.Array = inputs.output
        return output.mean(axis=0)


class Means(Before):
    """Drawn in another way."""

    NAME = "means"

    def plot(self, values: np.ndarray) -> dict[str, float]:
        """Return the sum."""
        return {"sum": float(values.sum())}


class Fails(Before):
    """Fails at one step."""

    NAME = "means"

    def plot(self, values: np.ndarray) -> dict[str, float]:
        """Fail where the value is 2."""
        if values[0, 0] == 2:
            raise ZeroDivisionError("two\nlines")
        if values[0, 0] == 3:
            raise SystemExit(1)
        return {"sum": float(values.sum())}


class MeasuresAnew(Means):
    """Computes something else."""

    NAME = "means"

    def analyze(self, layer: Hidden, inputs: Any) -> jax.Array:
        """Take the largest."""
        output: jax.Array = inputs.output
        return output.max(axis=0)


class DrawsNothing(Before):
    """Draws nothing."""

    NAME = "means"

    def plot(self, values: np.ndarray) -> None:
        """Return nothing."""


class DrawsFigure(Before):
    """Draws a figure."""

    NAME = "means"

    def plot(self, values: np.ndarray) -> Any:
        """Return a heatmap."""
        return self.heatmap(values)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A run that was logged by a loop of its own: values and figures of 4 steps."""
    with writer(tmp_path) as ledger:
        for step in range(1, 5):
            (ref,) = ledger.append(
                new_values(
                    step,
                    name="means",
                    measure=measure_hash(Before()),
                    draw="before",
                    valid={"blocks_0/attn": step != 4},
                )
            )
            ledger.append(new_figure(step, ref, name="means", draw="before"))
    return tmp_path


def run_of(root: Path) -> Run:
    return Store(root).run("r1")


def redraw(root: Path, analysis: type[AnalysisBase], **options: Any) -> Redrawn:
    return replot("r1", [analysis], root=root, **options)


def test_every_step_is_drawn_from_its_stored_values(root: Path) -> None:
    tells: list[tuple[int, int]] = []
    outcome = redraw(root, Means, tell=lambda *counts: tells.append(counts))
    assert (outcome.done, outcome.skipped) == ({"means": [1, 2, 3]}, 1)
    assert (outcome.exit_code, tells) == (0, [(1, 3), (2, 3), (3, 3)])
    series = run_of(root)["means"]
    for step in (1, 2, 3):
        result = series[step]
        assert result.table == {"sum": 6.0 * step}
        assert (result.source.kind, result.wall_time) == ("replot", 100.0 + step)
        assert result.result_record is not None
        assert result.result_record.draw == draw_hash(Means())
        values: Any = result.values
        assert np.array_equal(values, np.full((2, 3), step, np.float32))
    # Its branch was not taken: there is nothing in the values to be drawn.
    assert series[4].table is None


def test_older_drawings_stay_and_are_superseded(root: Path) -> None:
    redraw(root, Means, steps=Steps(first=1, stop=2))
    listed = run_of(root).results("means", 1, superseded=True)
    kinds = [(one.source.kind, one.superseded) for one in listed]
    assert kinds == [("live", True), ("replot", False)]
    assert listed[0].figure is not None
    assert run_of(root).state == "finished"


def test_twice_and_after_an_interruption_only_the_rest_is_drawn(root: Path) -> None:
    stop = itertools.count(1)

    def interrupt(_done: int, _total: int) -> None:
        if next(stop) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        redraw(root, Means, tell=interrupt)
    assert redraw(root, Means).done == {"means": [3]}
    outcome = redraw(root, Means)
    assert (outcome.done, outcome.skipped) == ({}, 4)
    assert redraw(root, Means, again=True).done == {"means": [1, 2, 3]}


def test_what_fails_is_named_and_shown_as_before(root: Path) -> None:
    outcome = redraw(root, Fails)
    assert outcome.failed == {
        ("means", 2): "ZeroDivisionError: two",
        ("means", 3): "SystemExit: 1",
    }
    assert (outcome.done, outcome.exit_code) == ({"means": [1]}, 3)
    assert "means at step 2 failed: ZeroDivisionError: two" in str(outcome)
    assert run_of(root)["means"][2].figure is not None
    with pytest.raises(AnalysisFault, match="means at step 2: ZeroDivisionError"):
        redraw(root, Fails, strict=True)


def test_values_of_other_code_need_a_replay(root: Path) -> None:
    outcome = redraw(root, MeasuresAnew)
    assert outcome.outdated == {"means": [1, 2, 3, 4]}
    assert (outcome.done, outcome.exit_code) == ({}, 3)
    assert "theseus-track replay" in str(outcome)


def test_a_plot_that_returns_nothing_changes_nothing(root: Path) -> None:
    outcome = redraw(root, DrawsNothing)
    assert (outcome.done, outcome.empty) == ({}, {"means": [1, 2, 3]})
    assert run_of(root)["means"][1].figure is not None


def test_damaged_values_cost_their_step_only(root: Path) -> None:
    (payload,) = (root / "runs" / "r1").glob("*.bin")
    data = bytearray(payload.read_bytes())
    data[0] ^= 1
    payload.write_bytes(data)
    outcome = redraw(root, Means)
    assert outcome.done == {"means": [2, 3]}
    assert list(outcome.failed) == [("means", 1)]


def test_wrong_names_are_told(root: Path) -> None:
    class Unknown(Means):
        NAME = "unknown"

    with pytest.raises(NotFound, match="'means'"):
        redraw(root, Unknown)
    with pytest.raises(BadInput, match="No analysis"):
        replot("r1", [], root=root)
    with writer(root) as ledger:
        ledger.append(new_figure(9, name="unknown"))
    with pytest.raises(NotFound, match="no stored values"):
        redraw(root, Unknown)


def test_one_replot_at_a_time(root: Path) -> None:
    with (
        Claim.take(root / "runs" / "r1", "replot"),
        pytest.raises(LedgerError, match="Another process"),
    ):
        redraw(root, Means)


@pytest.mark.slow  # starts the process that renders
def test_a_figure_has_files_and_its_view(root: Path) -> None:
    assert redraw(root, DrawsFigure, steps=Steps(first=2, stop=3)).complete
    result = run_of(root)["means"][2]
    assert [path.suffix for path in result.files] == [".png", ".pdf"]
    assert result.figure is not None
    assert result.figure.png.startswith(b"\x89PNG")
    assert result.view is not None
    assert np.array_equal(result.view.arrays["values"], np.full((2, 3), 2.0))


@pytest.fixture
def compiles() -> Iterator[list[float]]:
    """The compilations that happen meanwhile."""
    seen: list[float] = []

    def listen(event: str, duration_secs: float, **_: str | int) -> None:
        if event == COMPILE:
            seen.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seen
    jax.monitoring.unregister_event_duration_listener(listen)


class Redrawing(Trained):
    """Of the analysis of a training, the plot is another one, and uses its args."""

    NAME = "outputs"

    def plot(self, values: dict[str, np.ndarray]) -> dict[str, float]:
        """Return the largest, and a hyperparameter of the run."""
        largest = {path: float(value.max()) for path, value in values.items()}
        return {**largest, "steps": float(self.args.steps)}


@pytest.mark.slow  # trains
def test_a_training_needs_neither_model_nor_checkpoint_nor_compilation(
    tmp_path: Path, compiles: list[float]
) -> None:
    SmallWithAnalysis(steps=4)(tmp_path, name="train", id="r1")
    for path in tmp_path.rglob("checkpoints"):
        shutil.rmtree(path)
    before = run_of(tmp_path)["outputs"]
    stored: dict[int, Any] = {r.step: r.values for r in before}
    compiles.clear()
    assert redraw(tmp_path, Redrawing).done == {"outputs": [2, 4]}
    assert compiles == []
    for result in run_of(tmp_path)["outputs"]:
        expected = {k: float(v.max()) for k, v in stored[result.step].items()}
        assert result.table == {**expected, "steps": 4.0}


def test_the_command(root: Path, tmp_path: Path) -> None:
    def command(*words: str, code: int = 0) -> str:
        done = click.testing.CliRunner().invoke(
            main, ["replot", "r1", *words, "--root", str(root)]
        )
        assert done.exit_code == code, done.output
        return done.stdout

    spec = f"{__name__}:Means"
    text = command("-a", spec, "--step", "1", "--to", "memory")
    assert text.splitlines() == [
        "1 drawn, 0 needed nothing.",
        "memory: 4 delivered, 0 pending, 0 failed",
    ]
    assert "2 drawn, 2 needed nothing." in command("-a", spec)
    assert "failed: ZeroDivisionError" in command("-a", f"{__name__}:Fails", code=3)
    command("-a", spec, "--step", "1", "--steps", "1:2", code=2)
    command("-a", "nothing/here", code=2)
    command(code=2)
