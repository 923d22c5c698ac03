"""A View goes through the ledger and is drawn again with the same pixels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.analysis.figures.specimens import DIFFICULT, SPECIMENS
from theseus_track.analysis import figures
from theseus_track.records import RunInfo, View
from theseus_track.store import LedgerWriter, NewPart, NewResult, Store

ALL = {**SPECIMENS, **DIFFICULT}


def pixels(made: Any) -> np.ndarray:
    made.set_dpi(60)
    made.canvas.draw()
    return np.asarray(made.canvas.buffer_rgba()).copy()


def through_the_ledger(root: Path, view: View) -> View:
    writer = LedgerWriter.create(
        root, RunInfo(project="p", name="n", id="n-1", created=1.0)
    )
    part = NewPart(part="", kind="figure", blobs={"png": b"png"}, view=view)
    writer.append(
        NewResult(key=None, name="figure", step=1, wall_time=1.0, parts=(part,))
    )
    writer.close()
    read = Store(root).run("n-1")["figure"][1].view
    assert read is not None
    return read


@pytest.mark.parametrize(
    ("name", "theme"),
    [(name, "light") for name in ALL]
    + [(name, "serif-dark") for name in ("bar_errors", "token_strip", "grid_lines")],
)
def test_the_same_pixels(name: str, theme: str, tmp_path: Path) -> None:
    made = ALL[name](theme=theme)
    view = figures.view_of(made)
    assert view is not None
    again = figures.draw(through_the_ledger(tmp_path, view))
    np.testing.assert_array_equal(pixels(again), pixels(made))


@pytest.mark.parametrize("name", SPECIMENS)
def test_a_view_says_what_it_shows(name: str) -> None:
    view: Any = figures.view_of(SPECIMENS[name](theme="light"))
    assert view.caption
    assert view.arrays
    assert all(array.dtype.kind in "iufb" for array in view.arrays.values())
    assert view.scale["theme"] == "light"


def test_a_view_of_panels_refuses_given_axes() -> None:
    view: Any = figures.view_of(SPECIMENS["grid_lines"](theme="light"))
    _, axes = figures.figure()
    with pytest.raises(ValueError, match="ax"):
        figures.draw(view, ax=axes)
