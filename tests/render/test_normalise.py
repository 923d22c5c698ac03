"""What `plot` may return, and what is refused."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from theseus_track.errors import RenderError
from theseus_track.render import normalise


def test_none_is_no_part():
    assert normalise(None) == {}


def test_a_figure_its_axes_and_its_artists_are_that_figure():
    figure = Figure()
    axes = figure.subplots()
    image = axes.imshow(np.eye(2))
    for returned in (figure, axes, image):
        assert normalise(returned)[""] is figure


def test_a_subfigure_is_its_figure():
    figure = Figure()
    subfigures: Any = figure.subfigures(1, 2)
    left = subfigures[0]
    assert normalise(left.subplots())[""] is figure


def test_an_object_with_a_figure_as_seaborn_grids_have_is_that_figure():
    class Grid:
        figure = Figure()

    assert normalise(Grid())[""] is Grid.figure


def test_a_seaborn_grid_is_its_figure():
    seaborn = pytest.importorskip("seaborn")
    grid: Any = seaborn.JointGrid()
    try:
        assert normalise(grid)[""] is grid.figure
    finally:
        plt.close(grid.fig)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"mean": np.float32(0.5)}, {"mean": 0.5}),
        ({"nan": float("nan")}, {"nan": "NaN"}),
        ([1, 2, "x"], [1, 2, "x"]),
        (3, 3),
        ("text", "text"),
        (np.arange(3), [0, 1, 2]),
        ({"rows": [[1, 2], [3, 4]]}, {"rows": [[1, 2], [3, 4]]}),
        ({}, {}),
    ],
)
def test_json_values_are_one_part(value, kept):
    assert normalise(value) == {"": kept}


def test_a_mapping_with_a_figure_is_a_mapping_of_parts():
    figure = Figure()
    parts = normalise({"map": figure, "table": {"a": 1}, "nothing": None})
    assert parts == {"map": figure, "table": {"a": 1}}


def test_part_names_are_text():
    figure = Figure()
    assert set(normalise({0: figure, "blocks_0/attn": figure})) == {
        "0",
        "blocks_0/attn",
    }


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201])
def test_a_part_name_that_cannot_be_shown_is_refused(name):
    with pytest.raises(RenderError, match="printable"):
        normalise({name: Figure()})


def test_two_parts_of_one_name_are_refused():
    with pytest.raises(RenderError, match="'1'"):
        normalise({1: Figure(), "1": Figure()})


def test_a_list_of_arrays_is_refused_and_the_allowed_is_named():
    with pytest.raises(RenderError) as caught:
        normalise([np.eye(2), np.eye(2)])
    assert "list of ndarray" in str(caught.value)
    assert "matplotlib Figure" in str(caught.value)


def test_figure_and_axes_together_are_refused():
    figure = Figure()
    with pytest.raises(RenderError, match="Return the figure alone"):
        normalise((figure, figure.subplots()))


def test_an_array_of_axes_is_refused():
    with pytest.raises(RenderError, match="Return the figure alone"):
        normalise(Figure().subplots(2, 2))


def test_a_large_bare_array_is_refused_with_its_shape():
    with pytest.raises(RenderError, match=r"\(200, 200\)"):
        normalise(np.zeros((200, 200)))


def test_figures_below_the_first_level_are_refused():
    with pytest.raises(RenderError, match="'layers'"):
        normalise({"layers": {"a": Figure()}})


@pytest.mark.parametrize("value", [object(), {"f": object()}, b"bytes", 1j])
def test_other_things_are_refused_and_named(value):
    with pytest.raises(RenderError, match="a result may be"):
        normalise(value)
