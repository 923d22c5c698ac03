"""Differences between results, cell by cell."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.store.ledgers import new_figure, new_values, writer
from theseus_track.errors import BadInput
from theseus_track.store import Comparison, Result, Store, compare


def _results(root: Path, *values: object, **changes: Any) -> list[Result]:
    with writer(root) as ledger:
        for step, value in enumerate(values):
            ledger.append(new_values(step, value, **changes))
    return Store(root).run("r1").results()


def _compare(root: Path, a: object, b: object) -> Comparison:
    first, second = _results(root, a, b)
    return compare(first, second)


def test_the_difference_has_the_structure_of_the_value(tmp_path: Path) -> None:
    a = {"mean": np.array([1, 2], np.float32), "n": [np.int8(100)]}
    b = {"mean": np.array([1, 5], np.float32), "n": [np.int8(-100)]}
    comparison = _compare(tmp_path, a, b)
    assert isinstance(comparison.difference, dict)
    np.testing.assert_array_equal(comparison.difference["mean"], [0, -3])
    assert comparison.difference["n"][0] == 200
    assert comparison.max_abs == 200


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
    comparison = _compare(tmp_path, np.array(a), np.array(b))
    np.testing.assert_equal(comparison.max_abs, largest)


def test_unsigned_and_boolean_cells_do_not_wrap(tmp_path: Path) -> None:
    a = [np.array([1], np.uint8), np.array([False]), np.array([2**63], np.uint64)]
    b = [np.array([2], np.uint8), np.array([True]), np.array([0], np.uint64)]
    difference = _compare(tmp_path, a, b).difference
    assert isinstance(difference, list)
    assert [float(cell[0]) for cell in difference] == [-1, -1, 2.0**63]


def test_what_is_unknown_is_not_called_equal(tmp_path: Path) -> None:
    first, second = _results(tmp_path, np.zeros(1), np.zeros(1))
    comparison = compare(first, second)
    assert comparison.same_probe is None
    assert comparison.same_measure is None
    assert comparison.same_program is None
    assert comparison.same_paths
    assert not comparison.same_step


def test_what_is_known_is_compared(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        ledger.append(new_values(1, probe="x", measure="m", program="p", name="a"))
        ledger.append(new_values(1, probe="y", measure="m", paths=("q",), name="b"))
    comparison = compare(*Store(tmp_path).run("r1").results())
    assert comparison.same_probe is False
    assert comparison.same_measure is True
    assert comparison.same_program is None
    assert not comparison.same_paths
    assert comparison.same_step


def test_shapes_must_agree(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"m.*\(2,\).*\(3,\)"):
        _compare(tmp_path, {"m": np.zeros(2)}, {"m": np.zeros(3)})


def test_structures_must_agree(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"'a'.*'b'"):
        _compare(tmp_path, {"a": np.zeros(2)}, {"b": np.zeros(2)})


def test_a_result_without_values_cannot_be_compared(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        ledger.append(new_values(1), new_figure(2))
    first, second = Store(tmp_path).run("r1").results()
    with pytest.raises(BadInput, match=r"step 2.*has no values"):
        compare(first, second)
