"""Thinned curves keep what stands out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theseus_track.dashboard.curves import thinned

FLOATS = st.floats(allow_nan=True, allow_infinity=True, width=32)


@given(st.lists(FLOATS, max_size=300), st.integers(4, 50))
def test_the_extremes_and_the_ends_are_kept(numbers: list[float], points: int) -> None:
    value = np.array(numbers, np.float64)
    kept = thinned(value, points)
    assert len(kept) <= max(points, 4)
    assert (np.diff(kept) > 0).all()
    if numbers:
        assert (kept[0], kept[-1]) == (0, len(numbers) - 1)
    known = value[~np.isnan(value)]
    if known.size:
        found = value[kept]
        assert np.nanmin(found) == known.min()
        assert np.nanmax(found) == known.max()


@pytest.mark.parametrize("points", [4, 10, 1000])
def test_a_single_peak_among_many_rows_is_kept(points: int) -> None:
    value = np.zeros(100_000)
    value[71_234] = 5.0
    assert 71_234 in thinned(value, points)
