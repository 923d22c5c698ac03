"""One panel of a View that has several."""

import numpy as np
import pytest

from theseus_track.dashboard.one_panel import one_panel, panel_names
from theseus_track.errors import NotFound
from theseus_track.records import View

GRID = View(
    kind="grid",
    arrays={"0/values": np.zeros((2, 2)), "1/values": np.ones((2, 2))},
    labels={"panels": [{"labels": {"title": "head 0"}}, None]},
)
STACK = View(
    kind="heatmap",
    arrays={"values": np.arange(8.0).reshape(2, 2, 2)},
    labels={"panels": ["a"]},
)


def test_panels_have_their_names_or_numbers() -> None:
    assert panel_names(GRID) == ["head 0", "1"]
    assert panel_names(STACK) == ["a", "1"]
    assert panel_names(one_panel(STACK, 1)) == []


@pytest.mark.parametrize(("view", "sum_"), [(GRID, 4.0), (STACK, 22.0)])
def test_a_panel_is_a_view_of_its_own(view: View, sum_: float) -> None:
    panel = one_panel(view, 1)
    assert panel.kind == "heatmap"
    assert panel.arrays["values"].shape == (2, 2)
    assert panel.arrays["values"].sum() == sum_


def test_a_single_view_is_its_only_panel() -> None:
    single = one_panel(STACK, 0)
    assert one_panel(single, 5) is single


def test_there_is_no_panel_beyond_the_last() -> None:
    with pytest.raises(NotFound, match="2 panels"):
        one_panel(GRID, 2)
