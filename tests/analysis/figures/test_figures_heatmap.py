"""What a heatmap shows, read back from its pixels and texts."""

from typing import Any

import matplotlib
import ml_dtypes
import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from theseus_track.analysis import figures
from theseus_track.analysis.figures.reduction import MAX_CELLS, REDUCED
from theseus_track.analysis.figures.theme import HOUSE
from theseus_track.errors import BadInput
from theseus_track.render.files import figure_files

# Untyped here: a test reads what matplotlib's own types leave open.
figure: Any = figures.figure
heatmap: Any = figures.heatmap
view_of: Any = figures.view_of


def pixels(made):
    """The drawn figure [row, column, RGB], 0 to 1."""
    made.canvas.draw()
    return np.asarray(made.canvas.buffer_rgba())[:, :, :3] / 255.0


def color_at(made, row, column, ax=None):
    """The colour in the middle of a cell, as seen."""
    image = pixels(made)
    axes = made.axes[0] if ax is None else ax
    x, y = axes.transData.transform((column + 0.3, row + 0.3))
    return image[image.shape[0] - 1 - int(y), int(x)]


def all_text(made):
    return " | ".join(text.get_text() for text in made.findobj(Text))


def tick_labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def close_to(color, name):
    expected = to_rgb(name) if isinstance(name, str) else name[:3]
    np.testing.assert_allclose(color, expected, atol=2 / 255)
    return True


def test_returns_a_figure_without_pyplot_that_carries_its_view():
    made = heatmap(np.eye(3))
    assert type(made) is Figure
    assert made.canvas.manager is None
    assert view_of(made) is vars(made)["theseus_view"]
    assert view_of(Figure()) is None


def test_values_of_one_sign_have_sequential_colours_from_lowest_to_highest():
    made = heatmap([[0.0, 1.0], [0.5, 1.0]])
    assert close_to(color_at(made, 0, 0), colormaps[HOUSE.sequential](0.0))
    assert close_to(color_at(made, 0, 1), colormaps[HOUSE.sequential](1.0))
    assert close_to(color_at(made, 1, 0), colormaps[HOUSE.sequential](0.5))


def test_values_of_both_signs_have_diverging_colours_centred_on_zero():
    made = heatmap([[-1.0, 0.0], [4.0, 1.0]])
    scale = view_of(made).scale
    assert (scale["vmin"], scale["vmax"], scale["center"]) == (-4.0, 4.0, 0.0)
    assert close_to(color_at(made, 1, 0), colormaps[HOUSE.diverging](1.0))
    assert close_to(color_at(made, 0, 1), colormaps[HOUSE.diverging](0.5))


def test_center_with_given_ends_trims_the_map_as_seaborn_does():
    made = heatmap([[-1.0, 3.0]], vmin=-1, vmax=3, center=0, cmap="RdBu_r")
    assert close_to(color_at(made, 0, 1), colormaps["RdBu_r"](1.0))
    assert close_to(color_at(made, 0, 0), colormaps["RdBu_r"](0.5 - 1 / 6))


def test_robust_takes_percentiles():
    values = np.arange(100.0).reshape(10, 10)
    scale = view_of(heatmap(values, robust=True)).scale
    assert scale["vmin"] == pytest.approx(np.percentile(values, 2))
    assert scale["vmax"] == pytest.approx(np.percentile(values, 98))


def test_the_colour_bar_shows_on_which_sides_values_lie_beyond_it():
    values = np.arange(100.0).reshape(10, 10)
    for options, extend in (
        ({}, "neither"),
        ({"robust": True}, "both"),
        ({"vmax": 50}, "max"),
        ({"vmin": 50}, "min"),
    ):
        made = heatmap(values, **options)
        assert view_of(made).scale["extend"] == extend
        assert pixels(made).std() > 0


def test_log_norm_begins_at_the_lowest_positive_value():
    made = heatmap([[0.0, 0.1], [1.0, 10.0]], norm="log")
    assert view_of(made).scale["vmin"] == pytest.approx(0.1)
    assert close_to(color_at(made, 1, 0), colormaps[HOUSE.sequential](0.5))


def test_nan_and_inf_have_their_own_colours_and_are_counted():
    values = np.linspace(0, 1, 20).reshape(4, 5)
    values[0, 1], values[1, 2], values[2, 3], values[3, 3] = (
        np.nan, np.inf, -np.inf, -np.inf,
    )  # fmt: skip
    made = heatmap(values)
    assert close_to(color_at(made, 0, 1), HOUSE.nan)
    assert close_to(color_at(made, 1, 2), HOUSE.posinf)
    assert close_to(color_at(made, 2, 3), HOUSE.neginf)
    for said in ("1 NaN", "1 +inf", "2 -inf of 20"):
        assert said in all_text(made)
        assert said.split(" of ")[0] in view_of(made).caption
    assert view_of(made).scale["vmax"] == pytest.approx(1.0)


def test_one_nan_of_many_is_seen_and_stated():
    values = np.random.default_rng(0).normal(size=(64, 128))
    values[5, 6] = np.nan
    made = heatmap(values)
    assert "1 NaN of 8192" in all_text(made)
    assert close_to(color_at(made, 5, 6), HOUSE.nan)


def test_a_causal_mask_does_not_spoil_the_range():
    values = np.where(np.tril(np.ones((6, 6))) > 0, 0.25, -np.inf)
    values[5, 5] = 1.0
    made = heatmap(values)
    assert (view_of(made).scale["vmin"], view_of(made).scale["vmax"]) == (0.25, 1.0)
    assert close_to(color_at(made, 0, 5), HOUSE.neginf)


@pytest.mark.parametrize(
    "values",
    [
        np.full((4, 4), np.nan),
        np.zeros((3, 3)),
        np.full((2, 2), 3e38, np.float32),
        np.array([[1e308, -1e308]]),
        np.array([[5e-324, 0.0]]),
        np.full((1, 1), -np.inf),
    ],
)
def test_difficult_numbers_are_drawn(values):
    assert pixels(heatmap(values)).std() > 0


def test_masked_cells_are_neither_drawn_nor_counted():
    values = np.array([[1.0, np.nan], [9.0, 2.0]])
    made = heatmap(values, mask=[[False, True], [True, False]])
    assert close_to(color_at(made, 0, 1), HOUSE.paper)
    assert view_of(made).scale["vmax"] == 2.0
    assert "NaN" not in all_text(made)


def test_one_dimension_is_one_row():
    made = heatmap([1.0, 2.0, 3.0])
    assert view_of(made).arrays["values"].shape == (1, 3)
    assert tick_labels(made.axes[0].yaxis) == []
    assert tick_labels(made.axes[0].xaxis) == ["0", "1", "2"]


def test_a_number_is_text():
    assert "2.5" in all_text(heatmap(2.5, title="loss"))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0,), (0, 3, 3)])
def test_empty_says_no_data_and_its_shape(shape):
    said = all_text(heatmap(np.zeros(shape), title="t"))
    assert "no data" in said
    assert "\u00d7".join(map(str, shape)) in said


def test_three_dimensions_are_small_multiples_on_one_scale():
    values = np.arange(3 * 4 * 5.0).reshape(3, 4, 5)
    made = heatmap(values, title="heads")
    panels = [axes for axes in made.axes if axes.images]
    assert [axes.get_title(loc="left") for axes in panels[:3]] == ["0", "1", "2"]
    assert close_to(color_at(made, 0, 0, panels[0]), colormaps[HOUSE.sequential](0.0))
    assert close_to(color_at(made, 3, 4, panels[2]), colormaps[HOUSE.sequential](1.0))
    assert view_of(made).arrays["values"].shape == (3, 4, 5)


@pytest.mark.slow
def test_too_many_panels_are_reduced_and_said():
    # Makes 64 axes.
    made = heatmap(np.random.default_rng(0).random((100, 2, 2)))
    assert "64 of 100 panels" in all_text(made)


def test_four_dimensions_are_refused_with_the_shape():
    with pytest.raises(BadInput, match=r"\(2, 2, 2, 2\)"):
        heatmap(np.zeros((2, 2, 2, 2)))


def test_a_large_array_is_reduced_to_means_and_says_so():
    values = np.random.default_rng(0).normal(size=(REDUCED * 3, 8))
    made = heatmap(values)
    view = view_of(made)
    expected = values.reshape(REDUCED, 3, 8).mean(axis=1)
    np.testing.assert_allclose(view.arrays["values"], expected, rtol=1e-5, atol=1e-6)
    assert "mean of 3\u00d71 values" in all_text(made)
    assert f"{values.min():.4g} to {values.max():.4g}" in view.caption
    assert tick_labels(made.axes[0].yaxis)[-1] == str(len(values) - 1)


def test_up_to_the_limit_every_cell_is_drawn():
    values = np.random.default_rng(0).normal(size=(MAX_CELLS, 2))
    assert view_of(heatmap(values)).arrays["values"].shape == values.shape


def test_a_reduction_keeps_faults_and_the_diagonal_of_a_mask():
    size = REDUCED * 2
    values = np.where(np.tril(np.ones((size, size))) > 0, 1.0, -np.inf)
    values[100, 3], values[200, 5] = np.nan, np.inf
    drawn = view_of(heatmap(values)).arrays["values"]
    assert np.isnan(drawn[50, 1])
    assert drawn[100, 2] == np.inf
    np.testing.assert_array_equal(np.diag(drawn)[60:], 1.0)
    assert drawn[0, 1] == -np.inf


@pytest.mark.slow
def test_sixty_thousand_rows_are_one_small_pdf():
    # Reads 15 million numbers.
    made = heatmap(np.random.default_rng(0).normal(size=(60_000, 256)))
    files = figure_files(made)
    assert len(files["pdf"]) < 1_000_000
    assert len(files["png"]) < 1_000_000


@pytest.mark.parametrize(
    "dtype",
    [
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.int4,
        bool,
        np.float16,
        np.uint8,
    ],
)
def test_small_types_are_drawn(dtype):
    made = heatmap(np.array([[0, 1], [1, 0]]).astype(dtype))
    assert close_to(color_at(made, 0, 1), colormaps[HOUSE.sequential](1.0))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.ones((2, 2), np.complex64), "complex"),
        (np.array([["a", "b"]]), "numbers"),
        (np.array([[object()]]), "object"),
        ([[1, 2], [3]], "data"),
    ],
)
def test_what_has_no_colour_is_refused(values, said):
    with pytest.raises(BadInput, match=said):
        heatmap(values)


def test_a_prng_key_is_refused_in_one_line():
    jax = pytest.importorskip("jax")
    with pytest.raises(BadInput, match="data") as caught:
        heatmap(jax.random.key(0))
    assert "\n" not in str(caught.value)


def test_annotations_are_written_into_their_cells():
    made = heatmap(np.arange(36).reshape(6, 6), annot=True, xticklabels=False, fmt="d")
    texts = {text.get_text() for text in made.axes[0].texts}
    assert texts == {str(number) for number in range(36)}


def test_annotations_of_their_own_and_their_format():
    made = heatmap([[1.0, 2.0]], annot=[["$a", "b"]], fmt="")
    assert [text.get_text() for text in made.axes[0].texts] == ["$a", "b"]
    with pytest.raises(BadInput, match="fmt"):
        heatmap([[1.0]], annot=True, fmt="d")
    with pytest.raises(BadInput, match="annot"):
        heatmap(np.zeros((100, 100)), annot=True)


TOKENS = ["$", "$x", "a_b$^", r"\frac$ $", "\n", "\ud800", "日本", "\0", "▁the", "é"]


def test_tokens_are_shown_literally_and_kept_raw_in_the_view(recwarn):
    made = heatmap(np.random.default_rng(0).random((10, 10)), xticklabels=TOKENS)
    pixels(made)
    shown = tick_labels(made.axes[0].xaxis)
    assert shown[:4] == TOKENS[:4]
    assert shown[4:8] == [r"\n", r"\ud800", r"\u65e5\u672c", r"\x00"]
    assert shown[8:] == TOKENS[8:]
    assert not any(
        label.get_parse_math() for label in made.axes[0].xaxis.get_ticklabels()
    )
    assert list(view_of(made).ticks["x"]) == TOKENS
    assert not recwarn.list


def test_many_labels_are_thinned_with_first_and_last_and_it_is_said():
    names = [f"row {number}" for number in range(200)]
    made = heatmap(np.random.default_rng(0).random((200, 4)), yticklabels=names)
    shown = tick_labels(made.axes[0].yaxis)
    assert 5 < len(shown) < 60
    assert (shown[0], shown[-1]) == ("row 0", "row 199")
    assert "row label" in all_text(made)
    assert list(view_of(made).ticks["y"]) == names


def test_tick_label_options_mean_what_they_mean_in_seaborn():
    values = np.random.default_rng(0).random((22, 22))
    axes = heatmap(values, xticklabels=5, yticklabels=False).axes[0]
    assert tick_labels(axes.xaxis) == ["0", "5", "10", "15", "20"]
    assert tick_labels(axes.yaxis) == []
    assert len(heatmap(values, xticklabels=True).axes[0].get_xticks()) == 22


def test_a_data_frame_names_rows_columns_and_axes():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[1, 2], [3, 4]], index=["a", "b"], columns=["c", "d"])
    frame.index.name, frame.columns.name = "rows", "cols"
    axes = heatmap(frame).axes[0]
    assert tick_labels(axes.xaxis) == ["c", "d"]
    assert tick_labels(axes.yaxis) == ["a", "b"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("cols", "rows")


def test_author_texts_are_set_and_their_maths_is_parsed():
    made = heatmap(np.eye(2), title=r"$\theta_1$", xlabel="Feature", ylabel="Token")
    axes = made.axes[0]
    assert axes.get_title(loc="left") == r"$\theta_1$"
    assert axes.title.get_parse_math()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Feature", "Token")


def test_the_figure_follows_the_shape_of_the_data():
    width, height = heatmap(np.zeros((16, 64))).get_size_inches()
    assert width > 1.5 * height
    width, height = heatmap(np.zeros((64, 16))).get_size_inches()
    assert height > 1.5 * width


def test_square_cells_lines_and_no_colour_bar():
    made = heatmap(np.eye(3), square=True, linewidths=2, linecolor="red", cbar=False)
    assert len(made.axes) == 1
    assert made.axes[0].get_aspect() == 1.0
    image = pixels(made)
    assert np.isclose(image, to_rgb("red"), atol=0.02).all(axis=-1).any()


def test_colour_bar_options_and_own_axes():
    made, axes = figure(1, 2)
    returned = heatmap(np.eye(3), ax=axes[0], cbar_ax=axes[1], cbar_kws={"label": "x"})
    assert returned is made
    assert len(made.axes) == 2
    assert axes[1].get_ylabel() == "x"


def test_small_multiples_inside_given_axes_are_refused():
    _, axes = figure()
    with pytest.raises(BadInput, match="ax"):
        heatmap(np.zeros((2, 3, 3)), ax=axes)


def test_rcparams_neither_change_nor_show():
    plain = pixels(heatmap(np.eye(3), title="t", xlabel="x"))
    settings: Any = {
        "axes.facecolor": "black",
        "figure.facecolor": "black",
        "text.color": "white",
        "axes.labelcolor": "white",
        "xtick.color": "white",
        "ytick.color": "white",
        "axes.edgecolor": "white",
        "axes.titlecolor": "white",
        "font.family": ["serif"],
        "axes.grid": True,
        "axes.titlesize": 30,
        "image.cmap": "gray",
        "image.origin": "lower",
        "figure.figsize": (1, 1),
        "figure.dpi": 30,
        "xtick.direction": "in",
        "xtick.top": True,
        "ytick.major.pad": 9.0,
        "axes.labelpad": 30.0,
        "figure.constrained_layout.h_pad": 0.5,
    }
    with matplotlib.rc_context(settings):
        before = dict(matplotlib.rcParams)
        styled = pixels(heatmap(np.eye(3), title="t", xlabel="x"))
        assert dict(matplotlib.rcParams) == before
    np.testing.assert_allclose(styled, plain, atol=1e-6)


def test_colormaps_by_name_list_object_and_seaborn():
    for cmap in ("magma", ["#ff0000", "#0000ff"], colormaps["plasma"]):
        made = heatmap([[0.0, 1.0]], cmap=cmap)
        assert view_of(made).scale["cmap"] in (
            "magma",
            ["#ff0000", "#0000ff"],
            "plasma",
        )
    assert close_to(color_at(heatmap([[0.0, 1.0]], cmap=["r", "b"]), 0, 0), "r")
    pytest.importorskip("seaborn")
    assert view_of(heatmap([[0.0, 1.0]], cmap="rocket")).scale["cmap"] == "rocket"
