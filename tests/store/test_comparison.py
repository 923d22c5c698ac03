"""Differences, means and spreads over runs, cell by cell, against plain numpy."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.store.ledgers import new_figure, new_values, writer
from theseus_track.errors import BadInput, NotFound
from theseus_track.store import Comparison, Run, Store, compare


def _runs(root: Path, *values: object, **changes: Any) -> list[Run]:
    for number, value in enumerate(values):
        with writer(root, f"r{number}") as ledger:
            ledger.append(new_values(5, value, **changes))
    return Store(root).runs()


def _compare(root: Path, *values: object) -> Comparison:
    return compare(_runs(root, *values), "activations")


def test_leaves_are_aligned_by_their_path(tmp_path: Path) -> None:
    a = {"mean": np.array([1, 2], np.float32), "n": [np.int8(100)]}
    b = {"n": [np.int8(-100)], "mean": np.array([1, 5], np.float32)}
    both = _compare(tmp_path, a, b)
    assert {*both.values} == {"mean", "n/0"}
    np.testing.assert_array_equal(both.values["mean"], [[1, 2], [1, 5]])
    np.testing.assert_array_equal(both.difference["mean"], [0, -3])
    assert both.difference["n/0"] == 200
    assert both.max_abs == 200


def test_mean_and_spread_are_those_of_numpy(tmp_path: Path) -> None:
    cells = np.random.default_rng(0).standard_normal((5, 3, 4)).astype(np.float32)
    several = _compare(tmp_path, *cells)
    wide = cells.astype(np.float64)
    np.testing.assert_array_equal(several.mean[""], wide.mean(axis=0))
    np.testing.assert_array_equal(several.std[""], wide.std(axis=0))
    np.testing.assert_array_equal(several.between(3, 1)[""], wide[3] - wide[1])


@pytest.mark.parametrize(
    ("a", "b", "largest"),
    [
        ([np.nan, np.inf, -np.inf], [np.nan, np.inf, -np.inf], 0),
        ([np.nan], [1.0], math.nan),
        ([np.inf], [1.0], math.inf),
        ([3e38], [-3e38], 6e38),
        ([], [], 0),
    ],
)
def test_non_finite_cells_are_equal_only_to_themselves(
    tmp_path: Path, a: list[float], b: list[float], largest: float
) -> None:
    both = _compare(tmp_path, np.array(a), np.array(b))
    np.testing.assert_equal(both.max_abs, largest)


def test_unsigned_and_boolean_cells_do_not_wrap(tmp_path: Path) -> None:
    a = [np.array([1], np.uint8), np.array([False]), np.array([2**63], np.uint64)]
    b = [np.array([2], np.uint8), np.array([True]), np.array([0], np.uint64)]
    difference = _compare(tmp_path, a, b).difference
    assert [float(cell[0]) for cell in difference.values()] == [-1, -1, 2.0**63]


def test_each_run_shows_its_nearest_earlier_step(tmp_path: Path) -> None:
    for run, steps in (("a", (10, 20)), ("b", (14, 28))):
        with writer(tmp_path, run) as ledger:
            for step in steps:
                ledger.append(new_values(step))
    a, b = Store(tmp_path).run("a"), Store(tmp_path).run("b")
    assert compare([a, b], "activations").steps == (20, 28)
    assert compare([a, b], "my/activations", 25).steps == (20, 14)
    assert compare([a, a], "activations", [10, 20]).max_abs == 10
    with pytest.raises(NotFound, match=r"step 20.*14 and 28.*id b"):
        compare([a, b], "activations", 20, exact=True)
    with pytest.raises(NotFound, match=r"step 12.*id b"):
        compare([a, b], "activations", 12)


def test_what_is_unknown_is_not_called_equal(tmp_path: Path) -> None:
    mismatches = _compare(tmp_path, np.zeros(1), np.zeros(1)).mismatches
    assert mismatches == dict.fromkeys(("probe", "measure", "program"), "unknown")


def test_what_differs_is_named(tmp_path: Path) -> None:
    known = {"measure": "m", "program": "p"}
    for run, changes in (
        ("a", known | {"probe": "x", "paths": ("blocks_0/attn",)}),
        ("b", known | {"probe": "y", "paths": ("blocks_1/attn",)}),
        ("c", {"probe": "x", "measure": "m"}),
    ):
        with writer(tmp_path, run) as ledger:
            ledger.append(new_values(1, **changes))
    told = compare(["a", "b"], "activations", root=tmp_path).mismatches
    assert told == {"probe": "x, y", "paths": "blocks_0/attn / blocks_1/attn"}
    told = compare(["a", "c"], "activations", root=tmp_path).mismatches
    assert told == {"program": "unknown in some"}


def test_a_leaf_that_cannot_be_aligned_is_named_and_left_out(tmp_path: Path) -> None:
    a = {"m": np.zeros(2), "s": np.ones(3), "only": np.zeros(1)}
    both = _compare(tmp_path, a, {"m": np.zeros(4), "s": np.zeros(3)})
    assert [*both.values] == ["s"]
    assert "only" in both.mismatches["structure"]
    assert "m [(2,), (4,)]" in both.mismatches["shape"]


@pytest.mark.parametrize(
    ("a", "b", "named"),
    [
        ({"m": np.zeros(2)}, {"m": np.zeros(3)}, r"m.*\(2,\).*\(3,\)"),
        ({"a": np.zeros(2)}, {"b": np.zeros(2)}, "a, b"),
    ],
)
def test_nothing_in_common_is_an_error(
    tmp_path: Path, a: object, b: object, named: str
) -> None:
    with pytest.raises(BadInput, match=named):
        _compare(tmp_path, a, b)


def test_a_result_without_values_cannot_be_compared(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        ledger.append(new_values(1), new_figure(2, parts=(), error="plot: boom"))
    run = Store(tmp_path).run("r1")
    with pytest.raises(BadInput, match=r"step 2.*has no values.*boom"):
        compare([run, run], "activations")


def test_what_is_asked_must_fit(tmp_path: Path) -> None:
    (run,) = _runs(tmp_path, np.zeros(1))
    with pytest.raises(BadInput, match="at least two"):
        compare([run], "activations")
    with pytest.raises(BadInput, match="3"):
        compare([run, run], "activations", [1, 2, 3])
    with pytest.raises(NotFound, match=r"'other'.*'activations'"):
        compare([run, run], "other")
