"""The specimens look as they did when somebody last looked at them."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.analysis.figures.regression import (
    BASELINES,
    CASES,
    difference,
    read,
    small,
)
from tests.analysis.figures.specimens import SPECIMENS
from theseus_track.analysis import figures

ALLOWED = 12.0
"""A block of 4 x 4 pixels may be so far off, of 255: one letter taken for another is
at 20 or more, and a line drawn in another blue at 16."""
MAX_BYTES = 600_000


@pytest.mark.parametrize("name", CASES)
def test_it_looks_as_before(name: str) -> None:
    draw, theme = CASES[name]
    stored = read(BASELINES / f"{name}.png")
    assert difference(small(draw(theme=theme)), stored) <= ALLOWED


def test_every_stored_image_is_compared_and_they_are_small() -> None:
    files = list(BASELINES.glob("*.png"))
    assert {path.stem for path in files} == set(CASES)
    assert sum(path.stat().st_size for path in files) < MAX_BYTES


def _relabelled(made: Any) -> None:
    made.axes[0].set_xlabel("Stop")


def _untitled(made: Any) -> None:
    made.axes[0].set_title("", loc="left")


def _recoloured(made: Any) -> None:
    made.axes[0].lines[0].set_color("#006090")


def _thinner(made: Any) -> None:
    made.axes[0].lines[0].set_linewidth(1.2)


@pytest.mark.parametrize("change", [_relabelled, _untitled, _recoloured, _thinner])
def test_the_comparison_sees_small_changes(change: Any) -> None:
    made = SPECIMENS["line"](theme="light")
    change(made)
    assert difference(small(made), read(BASELINES / "line.png")) > ALLOWED


def test_the_comparison_sees_a_moved_value() -> None:
    view: Any = figures.view_of(SPECIMENS["grid_heatmaps"](theme="light"))
    values = np.array(view.arrays["0/values"])
    values[3, 3] = -values[3, 3]
    moved = dataclasses.replace(view, arrays={**view.arrays, "0/values": values})
    stored = read(BASELINES / "grid_heatmaps.png")
    assert difference(small(figures.draw(moved)), stored) > ALLOWED
