"""Floats in 16 bits: rounded once, finite ones never lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theseus_track.records.narrow import narrowed, widened

floats = st.lists(st.floats(width=32), min_size=1, max_size=8)


@given(floats)
def test_rounding_keeps_what_is_finite_and_is_done_once(numbers: list[float]) -> None:
    array = np.array(numbers, np.float32)
    kept = narrowed(array)
    assert np.array_equal(np.isfinite(kept), np.isfinite(array))
    used = widened(kept, "float32")
    assert used.dtype == np.float32
    again = widened(narrowed(used), "float32")
    np.testing.assert_array_equal(again, used)
    largest = np.max(np.abs(array[np.isfinite(array)]), initial=0)
    if largest <= 65504:
        assert kept.dtype == np.float16
        # A float16 has 11 bits: half a unit of the last, or half of the smallest.
        np.testing.assert_allclose(used, array, rtol=2**-11, atol=2**-25)


@pytest.mark.parametrize("dtype", ["int32", "bool", "float16", "uint8"])
def test_other_dtypes_are_left_alone(dtype: str) -> None:
    array = np.ones(3, dtype)
    assert narrowed(array) is array
    assert widened(array, None) is array


def test_a_number_beyond_16_bits_leaves_its_array_as_it_is() -> None:
    array = np.array([1.0, 1e5])
    assert narrowed(array) is array


def test_doubles_come_back_as_doubles() -> None:
    kept = narrowed(np.array([1.5, np.inf, -np.inf, np.nan]))
    used = widened(kept, "float64")
    assert (kept.dtype.name, used.dtype.name) == ("float16", "float64")
    np.testing.assert_array_equal(used, [1.5, np.inf, -np.inf, np.nan])
    assert widened(kept, "bfloat16").dtype == np.float32
