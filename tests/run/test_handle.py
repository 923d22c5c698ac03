"""What is logged comes back from the ledger with its reader, at its step."""

import io
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
import seaborn as sns
from PIL import Image

from tests.models import Attention, gpt_and_variables, tokens
from theseus_track import open_run
from theseus_track.analysis import AnalysisBase, Values, instrument
from theseus_track.errors import (
    AnalysisFault,
    BadInput,
    LedgerError,
    NotFound,
    RenderError,
)
from theseus_track.run import CloseReport, RunHandle, reopen_run
from theseus_track.sinks import MemorySink, SinkReport, TensorBoardSink, sync
from theseus_track.store import Store


class Map(AnalysisBase):
    """A heatmap of the first attention layer's input."""

    TARGET = Attention

    def analyze(self, layer: Any, inputs: Any) -> Any:
        return inputs.x[0, :4, :5]

    def plot(self, values: Any) -> Any:
        return self.heatmap(values, title="Input", xlabel="Feature", ylabel="Token")


class Table(Map):
    NAME = "table"

    def plot(self, values: Any) -> Any:
        return {"mean": float(values.mean()), "worst": float("nan")}


class Raises(Map):
    NAME = "raises"

    def plot(self, values: Any) -> Any:
        raise ZeroDivisionError("no plot today")


class Arrays(Map):
    NAME = "arrays"

    def plot(self, values: Any) -> Any:
        return [values, values]


class Untraceable(Map):
    NAME = "untraceable"

    def analyze(self, layer: Any, inputs: Any) -> Any:
        raise ZeroDivisionError("no trace today")


def values_of(*analyses: type[AnalysisBase]) -> Values:
    model, variables = gpt_and_variables()
    values: Values = instrument(jax.jit(model.apply), analyses)(variables, tokens())[1]
    return values


@pytest.fixture
def run(tmp_path: Path) -> Any:
    with open_run(tmp_path, project="test", name="mine") as handle:
        yield handle


def _stored(run: RunHandle) -> Any:
    assert run.flush(60)
    return Store(run.root).run(run.id)


def test_a_value_and_its_figure_come_back_at_the_step(run: RunHandle) -> None:
    values = values_of(Map, Table)
    run.log(values, step=100, tokens=7, wall_time=1e9)
    stored = _stored(run)
    result = stored["map"][100]
    np.testing.assert_array_equal(result.values, values["map"])
    assert result.wall_time == 1e9
    assert result.paths == ("blocks_0/attn",)
    assert result.values_record.tokens == 7
    pixels = np.asarray(Image.open(io.BytesIO(result.figure.png)))
    assert pixels.shape[0] > 100
    assert result.view.kind == "heatmap"
    np.testing.assert_array_equal(result.view.arrays["values"], values["map"])
    assert stored["table"][100].table["worst"] == "NaN"


def test_log_returns_before_the_computation_is_done(run: RunHandle) -> None:
    @jax.jit
    def long(x: Any) -> Any:
        return jax.lax.fori_loop(0, 4000, lambda _, y: jnp.tanh(y @ x), x)[:4, :5]

    values = values_of(Map)
    x = jnp.full((256, 256), 0.01)
    long.lower(x).compile()
    late = long(x)
    run.log(jax.tree.map(lambda _: late, values), step=1)
    assert not late.is_ready()
    np.testing.assert_array_equal(_stored(run)["map"][1].values, late)


def test_wait_draws_before_it_returns(run: RunHandle) -> None:
    run.log(values_of(Map), step=3, wait=True)
    assert Store(run.root).run(run.id)["map"][3].figure is not None


def test_metrics_come_back_also_those_that_are_not_finite(run: RunHandle) -> None:
    run.log_metrics({"loss": jnp.float32(2.5), "n": 3, "bad": float("inf")}, step=4)
    (row,) = _stored(run).metrics()
    assert (row.step, row.metrics) == (4, {"loss": 2.5, "n": 3, "bad": "Infinity"})


def test_a_metric_that_is_no_number_costs_itself_alone(
    run: RunHandle, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for step in range(3):
            run.log_metrics({"loss": 1.0, "names": ["a"], "v": np.ones(3)}, step=step)
        rows = _stored(run).metrics()
    assert [row.metrics for row in rows] == [{"loss": 1.0}] * 3
    told = [r.getMessage() for r in caplog.records]
    assert sum("'names'" in text for text in told) == 1
    assert sum("'v'" in text for text in told) == 1


def test_a_plot_that_raises_costs_its_result_and_is_recorded(
    run: RunHandle, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for step in range(2):
            run.log(values_of(Raises, Map), step=step)
        stored = _stored(run)
    result = stored["raises"][1]
    assert "ZeroDivisionError: no plot today" in result.error
    assert "in plot" in result.result_record.traceback
    assert result.values.shape == (4, 5)
    assert stored["map"][1].error is None
    assert sum("no plot today" in r.getMessage() for r in caplog.records) == 1


def test_a_list_of_arrays_is_refused_with_what_is_allowed(run: RunHandle) -> None:
    run.log(values_of(Arrays), step=0)
    error = _stored(run)["arrays"][0].error
    assert "list of ndarray" in error
    assert "Figure" in error


def test_a_fault_of_tracing_is_recorded_once(run: RunHandle) -> None:
    values = values_of(Untraceable, Map)
    for step in (5, 6):
        run.log(values, step=step)
    stored = _stored(run)
    assert stored["untraceable"].steps == [5]
    assert "no trace today" in stored["untraceable"][5].error
    assert stored["map"].steps == [5, 6]


def test_strict_raises_at_the_next_call(tmp_path: Path) -> None:
    with open_run(tmp_path, strict=True) as run:
        run.log(values_of(Raises), step=0)
        run.flush(60)
        with pytest.raises(AnalysisFault, match="no plot today"):
            run.log_metrics({"loss": 1.0}, step=1)


def test_a_host_figure_is_copied_when_it_is_logged(run: RunHandle) -> None:
    figure, axes = plt.subplots()
    axes.plot([1, 2, 3])
    run.log_result("curve", figure, step=2)
    axes.clear()
    assert plt.get_fignums() == [figure.number]
    plt.close(figure)
    stored = _stored(run)["curve"][2]
    pixels = np.asarray(Image.open(io.BytesIO(stored.figure.png)).convert("RGB"))
    blue = np.all(np.abs(pixels.astype(int) - (31, 119, 180)) < 12, axis=-1)
    assert blue.sum() > 50
    assert stored.key is None


def test_bad_input_is_refused_at_the_call(run: RunHandle) -> None:
    with pytest.raises(BadInput, match="step=-1"):
        run.log(values_of(Map), step=-1)
    with pytest.raises(BadInput, match=r"step=1\.5"):
        run.log_metrics({"loss": 1.0}, step=1.5)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="takes the Values"):
        run.log({"a": 1}, step=1)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="'a b'"):
        run.log_result("a b", {"a": 1}, step=1)
    with pytest.raises(RenderError, match="object"):
        run.log_result("odd", object(), step=1)
    assert _stored(run).results() == []


def test_a_probe_is_stored_once_and_its_hash_goes_with_the_results(
    run: RunHandle, tmp_path: Path
) -> None:
    batch = {"x": tokens()}
    assert run.probe("val", batch) is batch
    run.probe("val", {"x": tokens() + 0})
    # The same batch in a file, and made by a function.
    np.savez(tmp_path / "val.npz", x=tokens())
    read = run.probe("val", tmp_path / "val.npz")
    np.testing.assert_array_equal(read["x"], tokens())
    assert run.probe("val", lambda: batch) is batch
    run.log(values_of(Map), step=1, probe="val")
    stored = _stored(run)
    records = [r for _, r in stored.records() if type(r).__name__ == "ProbeRecord"]
    assert len(records) == 1
    assert stored["map"][1].values_record.probe == records[0].hash
    assert stored["map"][1].values_record.probe_name == "val"
    with pytest.raises(BadInput, match="another batch"):
        run.probe("val", {"x": tokens() + 1})
    with pytest.raises(NotFound, match=r"'test'.*'val'"):
        run.log(values_of(Map), step=2, probe="test")


def test_the_users_open_figure_and_settings_stay_theirs(run: RunHandle) -> None:
    class Global(Map):
        NAME = "global"

        def plot(self, values: Any) -> Any:
            sns.set_theme(style="darkgrid")
            plt.figure()
            return sns.heatmap(values)

    figure = plt.figure()
    before = dict(plt.rcParams)
    run.log(values_of(Global), step=0)
    result = _stored(run)["global"][0]
    assert result.error is None
    assert result.figure.png
    assert plt.get_fignums() == [figure.number]
    assert not figure.axes
    assert dict(plt.rcParams) == before
    plt.close(figure)


def test_sinks_get_every_part_and_the_ledger_gets_their_marks(tmp_path: Path) -> None:
    sink = MemorySink()
    with open_run(tmp_path, sinks=[sink]) as run:
        run.log(values_of(Map, Table), step=7)
        run.log_metrics({"loss": 1.0}, step=7)
        assert run.flush(60)
        stored = _stored(run)
        items: dict[Any, Any] = {
            (type(item).__name__, getattr(item, "name", "")): item
            for item in sink.items
        }
        figure = items["FigureItem", "map"]
        assert (figure.step, figure.png) == (7, stored["map"][7].figure.png)
        assert "blocks_0/attn" in figure.caption
        assert "step 7" in figure.caption
        assert items["JsonItem", "table"].value["worst"] == "NaN"
        assert items["MetricsItem", ""].metrics == {"loss": 1.0}
    marks = [
        r for _, r in stored.refresh().records() if type(r).__name__ == "Delivered"
    ]
    assert {m.status for m in marks} == {"written"}
    assert sum(m.through for m in marks) >= 1


def test_an_existing_id_is_continued_and_older_results_are_superseded(
    tmp_path: Path,
) -> None:
    with open_run(tmp_path, id="r1", name="first") as run:
        for step in (10, 20, 30):
            run.log_metrics({"loss": float(step)}, step=step)
    with open_run(tmp_path, id="r1", name="ignored", resumed_at=20) as run:
        assert run.name == "first"
        run.log_metrics({"loss": -1.0}, step=20)
    stored = Store(tmp_path).run("r1")
    assert [(r.step, r.metrics["loss"]) for r in stored.metrics()] == [
        (10, 10.0),
        (20, -1.0),
    ]
    with pytest.raises(BadInput, match="'r1' exists"):
        open_run(tmp_path, id="r1", resume="never")
    with pytest.raises(NotFound, match="'r2'"):
        open_run(tmp_path, id="r2", resume="must")


def test_without_resumed_at_the_first_logged_step_decides(tmp_path: Path) -> None:
    with open_run(tmp_path, id="r1") as run:
        for step in (10, 20, 30):
            run.log_metrics({"loss": float(step)}, step=step)
    with open_run(tmp_path, id="r1") as run:
        run.log_metrics({"loss": -1.0}, step=20)
    rows = Store(tmp_path).run("r1").metrics()
    assert [(r.step, r.metrics["loss"]) for r in rows] == [(10, 10.0), (20, -1.0)]


def test_a_closed_run_says_so_and_closing_twice_is_harmless(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = open_run(tmp_path)
    report = run.close()
    assert report.complete
    assert run.close() is report
    with caplog.at_level(logging.WARNING):
        run.log_metrics({"loss": 1.0}, step=0)
        run.log_metrics({"loss": 1.0}, step=1)
    assert sum("closed" in r.getMessage() for r in caplog.records) == 1
    strict = open_run(tmp_path, strict=True)
    strict.close()
    with pytest.raises(LedgerError, match="closed"):
        strict.log_metrics({"loss": 1.0}, step=0)


def test_a_root_that_is_a_file_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    root = tmp_path / "file"
    root.write_text("mine")
    with pytest.raises(LedgerError, match="file"):
        open_run(root)
    assert root.read_text() == "mine"


def test_an_unknown_sink_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"'tensorbord'.*'tensorboard'"):
        open_run(tmp_path / "root", sinks=["tensorbord"])
    with pytest.raises(BadInput, match=r"called 'memory'"):
        open_run(tmp_path / "root", sinks=[MemorySink(), MemorySink()])
    assert not (tmp_path / "root").exists()


def test_switched_off_nothing_is_recorded_and_it_is_told_once(
    run: RunHandle, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("THESEUS_TRACK", "off")
    with caplog.at_level(logging.WARNING):
        run.log(Values(), step=0)
        run.log(Values(), step=1)
    assert [r.getMessage() for r in caplog.records] == [
        "THESEUS_TRACK=off: no analysis runs and none is recorded."
    ]
    assert _stored(run).results() == []


def test_ranks_that_write_nothing_take_every_call(tmp_path: Path) -> None:
    other = RunHandle(open_run(tmp_path).info, tmp_path / "none", None)
    other.log(values_of(Map), step=0)
    other.log_metrics({"loss": 1.0}, step=0)
    other.log_result("table", {"a": 1}, step=0)
    assert other.probe("val", 3) == 3
    assert other.flush()
    assert other.close().complete
    assert not (tmp_path / "none").exists()


class Leaves(Map):
    """Ends the thread that draws it, if it can."""

    NAME = "leaves"

    def plot(self, values: Any) -> Any:
        sys.exit("no data to plot")


def test_a_plot_that_exits_costs_its_result_alone(
    run: RunHandle, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for step in range(2):
            run.log(values_of(Leaves, Map), step=step)
        stored = _stored(run)
    assert "SystemExit: no data to plot" in stored["leaves"][1].error
    assert stored["map"].steps == [0, 1]
    assert all(result.figure is not None for result in stored["map"])
    assert sum("no data to plot" in r.getMessage() for r in caplog.records) == 1


def test_a_run_opened_twice_at_once_warns_and_hides_nothing_newer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = open_run(tmp_path, id="r1")
    one.log_metrics({"loss": 1.0}, step=5)
    one.flush(60)
    with caplog.at_level(logging.WARNING):
        two = open_run(tmp_path, id="r1")
    assert "'r1' is still being written" in caplog.text
    two.log_metrics({"loss": 2.0}, step=3)
    two.flush(60)
    one.log_metrics({"loss": 3.0}, step=6)
    for handle in (one, two):
        handle.close()
    rows = Store(tmp_path).run("r1").metrics()
    assert [(row.step, row.metrics["loss"]) for row in rows] == [(3, 2.0), (6, 3.0)]


@pytest.mark.parametrize(
    ("field", "value"), [("tokens", "x"), ("samples", -1), ("wall_time", "now")]
)
def test_a_moment_that_makes_no_sense_is_refused(
    run: RunHandle, field: str, value: Any
) -> None:
    with pytest.raises(BadInput, match=rf"{field}={value!r}"):
        run.log_metrics({"loss": 1.0}, step=0, **{field: value})


def test_one_sink_may_be_given_by_its_name_and_a_file_is_no_log_directory(
    tmp_path: Path,
) -> None:
    with open_run(tmp_path, sinks="memory") as run:
        assert list(run.info.sinks) == ["memory"]
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(BadInput, match="is a file"):
        open_run(tmp_path, tensorboard=file)
    with pytest.raises(BadInput, match="is a file"):
        open_run(tmp_path, sinks=[f"tensorboard:{file}"])


def test_the_report_does_not_call_recorded_what_was_lost() -> None:
    report = CloseReport(
        run="r1", recorded=True, lost=3, drawn=True, sinks=(), faults=()
    )
    assert "3 logged entries were lost" in str(report)
    assert "all recorded" not in str(report)
    assert not report.complete


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (None, "finished"),
        (KeyboardInterrupt(), "stopped"),
        (ValueError("no"), "stopped"),
        (SystemExit(0), "finished"),
        (SystemExit(1), "stopped"),
    ],
)
def test_a_block_that_is_left_by_an_exception_is_not_finished(
    tmp_path: Path, error: BaseException | None, state: str
) -> None:
    def work() -> None:
        with open_run(tmp_path, id="r") as run:
            run.log_metrics({"loss": 1.0}, step=1)
            if error is not None:
                raise error

    if error is None:
        work()
    else:
        with pytest.raises(type(error)):
            work()
    assert Store(tmp_path).run("r").state == state


@pytest.mark.slow  # runs programs that end without closing
@pytest.mark.parametrize(("end", "state"), [("", "finished"), ("1 / 0", "stopped")])
def test_a_program_that_dies_of_an_exception_is_not_finished(
    tmp_path: Path, end: str, state: str
) -> None:
    code = (
        f"from theseus_track import open_run\nr = open_run({str(tmp_path)!r}, id='r')\n"
    )
    log = "r.log_metrics({'loss': 1.0}, step=1)\n"
    subprocess.run([sys.executable, "-c", code + log + end], check=False)
    run = Store(tmp_path).run("r")
    assert (run.state, run.last_step) == (state, 1)


def test_a_result_that_cannot_be_kept_is_named_as_such(tmp_path: Path) -> None:
    with open_run(tmp_path) as run, pytest.raises(RenderError) as caught:
        run.log_result("table", [np.zeros(3)], step=1)
    assert "The result is a list of ndarray" in str(caught.value)
    assert "plot returned" not in str(caught.value)


def test_a_step_beyond_64_bits_is_refused(tmp_path: Path) -> None:
    with open_run(tmp_path) as run, pytest.raises(BadInput, match=str(2**63 - 1)):
        run.log_metrics({"loss": 1.0}, step=2**63)


class Narrow(Map):
    NAME = "narrow"
    STORE_DTYPE = "float16"

    def analyze(self, layer: Any, inputs: Any) -> Any:
        large = jnp.full((2,), 1e5)
        return {"x": inputs.x[0, :4, :5] * 1.001, "large": large, "n": jnp.int32(3)}

    def plot(self, values: Any) -> Any:
        return {"dtype": str(values["x"].dtype), "seen": values["x"]}


def test_an_analysis_may_be_stored_in_half_the_bytes(tmp_path: Path) -> None:
    model, variables = gpt_and_variables()
    step = instrument(model.apply, [Narrow])
    _, values = step(variables, tokens())
    exact = np.asarray(values["narrow"]["x"])
    with open_run(tmp_path, id="r") as run:
        run.log(values, step=1)
    result = Store(tmp_path).run("r")["narrow"][1]
    assert result.dtypes == {"large": "float32", "n": "int32", "x": "float16"}
    assert result.origins == {"x": "float32"}
    stored: Any = result.values
    assert stored["x"].dtype == np.float32
    # 11 bits of a number remain.
    np.testing.assert_allclose(stored["x"], exact, rtol=2**-11, atol=2**-25)
    assert stored["large"].tolist() == [1e5, 1e5]
    seen: Any = result.table
    assert seen["dtype"] == "float32"
    np.testing.assert_array_equal(np.float32(seen["seen"]), stored["x"])


def test_only_half_precision_may_be_asked_for() -> None:
    with pytest.raises(BadInput, match=r"bfloat16.*float16"):

        class Wrong(Map):
            STORE_DTYPE = "bfloat16"


def test_the_report_says_how_to_deliver_the_rest() -> None:
    def report(pending: int) -> CloseReport:
        sink = SinkReport(
            sink="s",
            delivered=1,
            skipped=0,
            failed=0,
            pending=pending,
            reasons={},
            closed=True,
        )
        return CloseReport(
            run="r1", recorded=True, lost=0, drawn=True, sinks=(sink,), faults=()
        )

    assert "theseus-track sync r1" in str(report(1))
    assert "theseus-track sync" not in str(report(0))


def test_what_opens_a_tracker_again_does_not_depend_on_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sink = TensorBoardSink("others", run="a")
    for run_id, given in (("r1", "tensorboard:logs"), ("r2", sink)):
        with open_run(tmp_path, id=run_id, sinks=[given]) as run:
            run.log_metrics({"loss": 1.0}, step=1)
    monkeypatch.chdir("/")
    for run_id, place in (("r1", "logs/run-r1"), ("r2", "others/a")):
        assert sync(run_id, root=tmp_path).sinks[0].delivered == 0
        assert list((tmp_path / place).glob("*tfevents*"))
        with reopen_run(tmp_path, run_id) as run:
            run.log_result("facts", {"n": 1}, step=1)
        assert sync(run_id, root=tmp_path).sinks[0].delivered == 1
        assert list((tmp_path / place / "theseus").glob("*tfevents*"))
