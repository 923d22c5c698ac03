"""A View, written as JSON and read back, is drawn with the same pixels."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from theseus_track.analysis import figures
from theseus_track.records import dumps, loads

RANDOM = np.random.default_rng(0)
GRID = RANDOM.normal(size=(6, 8))
GRID[0, 0] = np.nan
COLUMNS: dict[str, Any] = {
    "x": np.tile(np.arange(6), 4),
    "y": RANDOM.normal(size=24),
    "kind": np.repeat(["a", "b"], 12),
}
NAMES: Any = {"x": "x", "y": "y", "hue": "kind"}


def pixels(made: Any) -> np.ndarray:
    made.canvas.draw()
    return np.asarray(made.canvas.buffer_rgba()).copy()


@pytest.mark.parametrize(
    "made",
    [
        figures.heatmap(GRID, title="t", xlabel="x", yticklabels=list("ab$c\n\ud800")),
        figures.heatmap(GRID, annot=True, mask=GRID > 1, linewidths=1, square=True),
        figures.heatmap(np.arange(24.0).reshape(2, 3, 4), title="panels"),
        figures.heatmap(np.abs(GRID), norm="log", cmap=["#000000", "#ffffff"]),
        figures.heatmap(3.5, title="number"),
        figures.heatmap(np.zeros((0, 3))),
        figures.heatmap(RANDOM.normal(size=(1200, 3))),
        figures.bar(COLUMNS, **NAMES, seed=0, capsize=0.2, edgecolor="k"),
        figures.bar(x=[1.0, 2.0], y=["p", "q"], palette="tab10"),
        figures.line(COLUMNS, **NAMES, style="kind", markers=True, seed=0),
        figures.line([3, 1, 2]),
        figures.scatter(COLUMNS, **NAMES, size="x", style="kind", alpha=0.5),
    ],
)
def test_the_same_pixels_after_a_round_trip(made):
    view: Any = figures.view_of(made)
    stored = dataclasses.replace(
        view,
        labels=loads(dumps(view.labels)),
        ticks=loads(dumps(view.ticks)),
        scale=loads(dumps(view.scale)),
    )
    again = figures.draw(stored)
    np.testing.assert_array_equal(pixels(again), pixels(made))
    assert figures.view_of(again) is stored
