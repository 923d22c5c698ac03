"""What belongs together, and what a newer record or attempt replaces."""

from pathlib import Path

import numpy as np

from tests.store.ledgers import evaluate, metrics, new_figure, new_values, writer
from theseus_track.records import RecordRef, Source
from theseus_track.store import Run, Store


def _run(root: Path) -> Run:
    return Store(root).run("r1")


def _seen(run: Run, *, superseded: bool = False) -> list[tuple[int, float]]:
    return [
        (result.step, float(np.asarray(result.values).flat[0]))
        for result in run.results(superseded=superseded)
    ]


def test_values_and_figure_of_one_evaluation_are_one_result(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        evaluate(ledger, 10, "a", "b")
    results = _run(tmp_path).results()
    assert [(r.name, r.step) for r in results] == [("a", 10), ("b", 10)]
    assert all(r.figure and r.values is not None for r in results)


def test_values_whose_figure_was_never_drawn_are_listed(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        ledger.append(new_values(10))
    (result,) = _run(tmp_path).results()
    assert result.files == []
    assert result.figure is None
    assert result.table is None
    assert result.error is None
    np.testing.assert_array_equal(result.values, np.full((2, 3), 10))


def test_a_resumed_attempt_replaces_what_it_does_again(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        for step in (100, 110, 120, 124):
            evaluate(ledger, step)
            ledger.append(metrics(step, attempt=1))
    with writer(tmp_path, resumed_at=120) as ledger:
        for step in (120, 130):
            evaluate(ledger, step, value=np.full((2, 3), -step, np.float32))
            ledger.append(metrics(step, attempt=2))
    run = _run(tmp_path)
    assert _seen(run) == [(100, 100), (110, 110), (120, -120), (130, -130)]
    assert run.steps == [100, 110, 120, 130]
    assert [r.superseded for r in run.results(step=120, superseded=True)] == [
        True,
        False,
    ]
    assert [r.step for r in run.results(superseded=True)] == [
        100,
        110,
        120,
        120,
        124,
        130,
    ]
    rows = [(row.step, row.metrics["attempt"]) for row in run.metrics()]
    assert rows == [(100, 1), (110, 1), (120, 2), (130, 2)]
    assert len(run.metrics(superseded=True)) == 6
    assert run.last_step == 130


def test_an_attempt_that_resumed_lower_replaces_all_before_it(tmp_path: Path) -> None:
    for resumed, steps in ((None, (1, 2, 3)), (3, (3, 4)), (2, (2,))):
        with writer(tmp_path, resumed_at=resumed) as ledger:
            for step in steps:
                evaluate(ledger, step)
    assert _run(tmp_path).steps == [1, 2]


def test_a_replay_is_no_attempt(tmp_path: Path) -> None:
    source = Source(kind="replay", checkpoint="ckpt/200", checkpoint_time=5.0)
    with writer(tmp_path) as ledger:
        evaluate(ledger, 100)
    with writer(tmp_path, purpose="replay", resumed_at=0) as ledger:
        ledger.append(new_values(200, source=source))
    with writer(tmp_path, resumed_at=150) as ledger:
        evaluate(ledger, 150)
    run = _run(tmp_path)
    assert run.steps == [100, 150, 200]
    assert run["activations"][200].source == source
    assert run["activations"][200].to_json()["checkpoint"] == "ckpt/200"


def test_of_one_name_and_step_the_newest_wins(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        evaluate(ledger, 5, value=np.float32(1))
        evaluate(ledger, 5, value=np.float32(2))
        evaluate(ledger, 5, "other", value=np.float32(3))
    run = _run(tmp_path)
    assert _seen(run) == [(5, 2), (5, 3)]
    assert _seen(run, superseded=True) == [(5, 1), (5, 2), (5, 3)]


def test_a_figure_drawn_again_replaces_the_figure_and_keeps_the_values(
    tmp_path: Path,
) -> None:
    with writer(tmp_path) as ledger:
        (ref,) = ledger.append(new_values(5))
        ledger.append(new_figure(5, ref, draw="old"))
    with writer(tmp_path, purpose="replot") as ledger:
        ledger.append(new_figure(5, ref, draw="new", source=Source(kind="replot")))
    run = _run(tmp_path)
    (result,) = run.results()
    assert result.source.kind == "replot"
    assert result.to_json()["draw"] == "new"
    np.testing.assert_array_equal(result.values, np.full((2, 3), 5))
    assert result.view is not None
    assert [r.superseded for r in run.results(superseded=True)] == [True, False]


def test_an_old_figure_drawn_again_does_not_replace_newer_values(
    tmp_path: Path,
) -> None:
    with writer(tmp_path) as ledger:
        (old,) = ledger.append(new_values(5, np.float32(1)))
        ledger.append(new_values(5, np.float32(2)))
        ledger.append(new_figure(5, old))
    assert _seen(_run(tmp_path)) == [(5, 2)]


def test_a_figure_of_values_that_are_gone_stands_alone(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        (row,) = ledger.append(metrics(1, loss=1.0))
        ledger.append(new_figure(5, RecordRef(writer="gone", seq=3)))
        ledger.append(new_figure(6, row))
        (other,) = ledger.append(new_values(7, name="other"))
        ledger.append(new_figure(8, other))
    run = _run(tmp_path)
    assert run["activations"].steps == [5, 6, 8]
    assert all(result.values is None for result in run["activations"])
    assert all(result.figure for result in run["activations"])


def test_a_host_side_result_has_no_key(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        ledger.append(new_figure(5, key=None, name="confusion", paths=()))
    result = _run(tmp_path)["confusion"][5]
    assert result.key is None
    assert result.values is None
    assert result.shapes == {}
    assert result.to_json()["analysis"] is None


def test_a_fault_is_a_result_without_parts(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        (ref,) = ledger.append(new_values(5))
        ledger.append(
            new_figure(5, ref, parts=(), error="plot: boom", phase="plot"),
            new_figure(6, parts=(), error="select: none", phase="select"),
        )
    series = _run(tmp_path)["activations"]
    assert [result.error for result in series] == ["plot: boom", "select: none"]
    assert series[5].values is not None
    assert series[6].values is None
    assert series[6].files == []


def test_metrics_are_by_step_and_keep_their_order(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        ledger.append(metrics(2, a=1), metrics(1, a=2), metrics(2, b=float("nan")))
    rows = [(row.step, row.metrics) for row in _run(tmp_path).metrics()]
    assert rows == [(1, {"a": 2}), (2, {"a": 1}), (2, {"b": "NaN"})]
