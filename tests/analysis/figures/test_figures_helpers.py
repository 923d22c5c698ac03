"""Histograms, token strips, images and small multiples show what they are given."""

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from theseus_track.analysis import figures
from theseus_track.analysis.figures.theme import HOUSE
from theseus_track.errors import BadInput

# Untyped here: a test reads what matplotlib's own types leave open.
grid: Any = figures.grid
histogram: Any = figures.histogram
image_grid: Any = figures.image_grid
token_strip: Any = figures.token_strip
view_of: Any = figures.view_of


def said(made: Any) -> str:
    return " | ".join(text.get_text() for text in made.findobj(Text))


def legend(owner: Any) -> list[str]:
    return [text.get_text() for text in owner.get_texts()]


# Histograms


def test_a_histogram_counts_as_numpy_does() -> None:
    values = np.random.default_rng(0).normal(size=(40, 25))
    view = view_of(histogram(values, bins=13))
    heights, edges = np.histogram(values, 13)
    np.testing.assert_array_equal(view.arrays["heights"][0], heights)
    np.testing.assert_allclose(view.arrays["edges"], edges)


@pytest.mark.parametrize(("stat", "total"), [("probability", 1.0), ("density", None)])
def test_shares_and_densities(stat: str, total: float | None) -> None:
    values = np.random.default_rng(0).normal(size=500)
    view = view_of(histogram(values, stat=stat))
    heights, edges = view.arrays["heights"][0], view.arrays["edges"]
    assert (
        heights.sum()
        if total
        else (heights * np.diff(edges)).sum() == (pytest.approx(1.0))
    )


def test_few_integers_have_a_bin_each() -> None:
    view = view_of(histogram([0, 1, 1, 3]))
    assert view.arrays["edges"].tolist() == [-0.5, 0.5, 1.5, 2.5, 3.5]


def test_an_outlier_does_not_blow_the_bins_up() -> None:
    values = np.append(np.random.default_rng(0).normal(size=1000), 1e30)
    assert len(view_of(histogram(values)).arrays["edges"]) <= 65


def test_distributions_of_a_dict_share_bins_and_are_explained() -> None:
    made = histogram({"q": [0.0, 1.0], "k": [1.0, 2.0, 2.5]}, bins=5)
    view = view_of(made)
    assert view.arrays["heights"].shape == (2, 5)
    assert view.arrays["heights"].sum(axis=1).tolist() == [2, 3]
    assert legend(made.axes[0].get_legend()) == ["q", "k"]


def test_what_is_beyond_the_range_is_said() -> None:
    made = histogram([0.0, 1.0, 2.0, np.nan], binrange=(0.0, 1.5))
    assert "1 NaN of 4" in said(made)
    assert "1 of 3 beyond 0 to 1.5" in said(made)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("stat", "percent"), ("bins", "many"), ("bins", 0), ("bins", [1.0, 0.0]),
        ("binrange", (1, 0)), ("palette", "tab10"), ("hatch", "/"),
    ],
)  # fmt: skip
def test_a_histogram_refuses_by_name(parameter: str, value: Any) -> None:
    with pytest.raises(BadInput, match=parameter):
        histogram([0.5, 2.25], **{parameter: value})


# Token strips


def test_tokens_have_the_colours_of_their_numbers() -> None:
    made = token_strip([-1.0, 0.0, 2.0], ["a", "b", "c"], cmap=["#ff0000", "#0000ff"])
    (boxes,) = made.axes[0].collections
    assert [to_hex(c) for c in boxes.get_facecolor()] == [
        "#ff0000", "#ff0000", "#0000ff",
    ]  # fmt: skip
    assert [text.get_text() for text in made.axes[0].texts] == ["a", "b", "c"]


def test_tokens_that_are_not_finite_are_marked_and_counted() -> None:
    made = token_strip([1.0, np.nan, -np.inf], ["a", "b", "c"])
    (boxes,) = made.axes[0].collections
    assert [to_hex(c) for c in boxes.get_facecolor()[1:]] == [HOUSE.nan, HOUSE.neginf]
    assert "1 NaN" in said(made)
    assert "1 -inf of 3" in said(made)


def test_a_line_ends_after_a_newline_and_where_it_is_full() -> None:
    tokens = ["a", "b\n", "c", *(["wide token"] * 12)]
    texts = token_strip(range(15), tokens).axes[0].texts
    heights = [text.get_position()[1] for text in texts]
    assert heights[0] == heights[1] < heights[2] < heights[-1]
    assert texts[1].get_text() == r"b\n"
    rights = [text.get_window_extent().x1 for text in texts]
    assert max(rights) <= texts[0].axes.get_window_extent().x1 + 1.0


def test_tokens_of_a_dict_and_of_a_series() -> None:
    pandas = pytest.importorskip("pandas")
    numbers = {"the": 0.5, "cat": 1.0}
    for data in (numbers, pandas.Series(numbers)):
        assert view_of(token_strip(data)).labels["tokens"] == ["the", "cat"]


def test_very_many_tokens_are_cut_and_it_is_said() -> None:
    made = token_strip(np.arange(5000.0), ["t"] * 5000)
    assert "the first 600 of 5000 tokens" in said(made)


@pytest.mark.parametrize(
    ("data", "tokens", "match"),
    [
        ([1.0], ["a", "b"], "2 tokens"),
        ([1.0], None, "tokens="),
        (np.eye(2), [], "2, 2"),
    ],
)
def test_tokens_must_fit_the_numbers(data: Any, tokens: Any, match: str) -> None:
    with pytest.raises(BadInput, match=match):
        token_strip(data, tokens)


# Images


def test_images_are_drawn_one_beside_another_on_one_scale() -> None:
    images = np.stack([np.zeros((4, 6)), np.ones((4, 6)), np.full((4, 6), 2.0)])
    made = image_grid(images, cols=2)
    drawn = made.axes[0].images
    assert [image.get_extent()[0] for image in drawn] == [0.0, 1.06, 0.0]
    assert {image.get_clim() for image in drawn} == {(0.0, 2.0)}
    assert view_of(made).scale["cmap"] == "gray"


def test_images_of_both_signs_diverge() -> None:
    view = view_of(image_grid(np.array([[[-1.0, 3.0]]])))
    assert (view.scale["cmap"], view.scale["vmin"]) == (HOUSE.diverging, -3.0)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_colours_are_bytes_or_fractions(dtype: Any) -> None:
    full = 255 if dtype is np.uint8 else 1.0
    image = np.zeros((1, 2, 2, 3), dtype)
    image[0, 0, 0] = (full, 0, 0)
    made = image_grid(image)
    np.testing.assert_allclose(made.axes[0].images[0].get_array()[0, 0], [1, 0, 0])
    assert "scaled" not in said(made)


def test_colours_beyond_the_range_are_scaled_and_it_is_said() -> None:
    made = image_grid(np.array([[[[-1.0, 0.0, 3.0]]]]))
    assert view_of(made).labels["notes"] == ["colours scaled from -1 to 3"]
    np.testing.assert_allclose(made.axes[0].images[0].get_array()[0, 0], [0, 0.25, 1])


def test_one_image_and_one_image_with_channels() -> None:
    assert view_of(image_grid(np.zeros((5, 6)))).arrays["values"].shape == (1, 5, 6)
    one = image_grid(np.zeros((5, 6, 3)), channels=True)
    assert view_of(one).arrays["values"].shape == (1, 5, 6, 3)


def test_images_of_a_dict_have_titles() -> None:
    made = image_grid({"cat": np.eye(3), "a$b": np.eye(3)})
    assert [text.get_text() for text in made.axes[0].texts] == ["cat", "a$b"]


def test_pixels_that_are_not_finite_are_counted() -> None:
    image = np.ones((1, 3, 3))
    image[0, 1, 1] = np.nan
    assert "1 NaN of 9" in said(image_grid(image))


def test_many_and_large_images_are_reduced_and_it_is_said() -> None:
    assert "64 of 70 images" in said(image_grid(np.zeros((70, 2, 2))))
    assert "mean of 2×2" in said(image_grid(np.zeros((1, 512, 512))))  # noqa: RUF001


@pytest.mark.parametrize(
    "data",
    [
        np.zeros((2, 4, 4, 5)),
        np.zeros(3),
        [np.eye(2), np.eye(3)],
        np.zeros((1, 1, 1, 1, 3)),
    ],
)
def test_what_is_no_image_is_refused_with_its_shape(data: Any) -> None:
    with pytest.raises(BadInput, match="shape"):
        image_grid(data)


# Small multiples


def test_panels_share_their_colours() -> None:
    view = view_of(grid("heatmap", {"a": [[0.0, 1.0]], "b": [[-4.0, 2.0]]}))
    scales = [panel["scale"] for panel in view.labels["panels"]]
    assert {(s["vmin"], s["vmax"], s["cmap"]) for s in scales} == {
        (-4.0, 4.0, HOUSE.diverging)
    }
    apart = view_of(
        grid("heatmap", {"a": [[0.0, 1.0]], "b": [[-4.0, 2.0]]}, share=False)
    )
    assert apart.labels["panels"][0]["scale"]["vmax"] == 1.0


def test_panels_share_their_axes_bins_and_groups() -> None:
    lines = grid("line", {"a": {"q": [1, 2]}, "b": {"k": [5, 9], "q": [3, 4]}})
    assert lines.axes[0].get_ylim() == lines.axes[1].get_ylim()
    colors = [
        dict(zip(p["labels"]["groups"], p["scale"]["colors"], strict=True))
        for p in view_of(lines).labels["panels"]
    ]
    assert colors[0]["q"] == colors[1]["q"] != colors[1]["k"]
    bins = view_of(grid("histogram", {"a": [0.5, 1.25], "b": [7.0, 9.0]}))
    np.testing.assert_array_equal(bins.arrays["0/edges"], bins.arrays["1/edges"])


@pytest.mark.parametrize(
    ("helper", "panel", "options"),
    [
        ("heatmap", np.eye(3), {}),
        ("bar", [1.0, 2.0], {}),
        ("line", {"u": [1, 2]}, {}),
        ("scatter", {"u": [1, 2], "v": [3, 4]}, {"x": "u", "y": "v"}),
        ("histogram", [1.0, 2.5], {}),
        ("token_strip", [1.0, 2.0], {"tokens": ["a", "b"]}),
        ("image_grid", np.ones((2, 3, 3)), {}),
    ],
)
def test_every_helper_makes_panels(helper: str, panel: Any, options: Any) -> None:
    view = view_of(grid(helper, {"one": panel, "two": panel}, title="t", **options))
    assert [p["kind"] for p in view.labels["panels"]] == [helper, helper]
    assert [p["labels"]["title"] for p in view.labels["panels"]] == ["one", "two"]


def test_panels_of_lists_arrays_and_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [2.0, 3.0]})
    for panels in ([[1, 2], [2, 3]], np.array([[1, 2], [2, 3]]), frame):
        assert len(view_of(grid("line", panels)).labels["panels"]) == 2


def test_a_grid_counts_what_is_not_finite_and_says_what_it_left_out() -> None:
    made = grid("heatmap", {"a": [[np.nan, 1.0]], "b": [[2.0, np.inf]]})
    assert "1 NaN" in said(made)
    assert "1 +inf of 4" in said(made)
    assert "36 of 50 panels" in said(grid("line", np.zeros((50, 2))))


def test_axis_labels_are_inferred_where_all_panels_agree() -> None:
    data = {"step": [1, 2], "loss": [3.0, 2.0]}
    view = view_of(grid("line", {"a": data, "b": data}, x="step", y="loss"))
    assert (view.labels["x"], view.labels["y"]) == ("step", "loss")


@pytest.mark.parametrize(
    ("helper", "panels", "options", "match"),
    [
        ("pie", {"a": [1]}, {}, "pie"),
        ("line", {}, {}, "empty"),
        ("line", 3, {}, "int"),
        ("line", {"a": [1]}, {"ax": 1}, "ax"),
        ("line", {"a": np.zeros((2, 2, 2))}, {}, "'a'"),
    ],
)
def test_a_grid_refuses_by_name(
    helper: str, panels: Any, options: Any, match: str
) -> None:
    with pytest.raises(BadInput, match=match):
        grid(helper, panels, **options)


def test_a_dict_of_matrices_is_small_multiples_of_one_heatmap() -> None:
    made: Any = figures.heatmap({"blocks_0": np.eye(3), "blocks_1": np.eye(3)})
    titles = [axes.get_title(loc="left") for axes in made.axes[:2]]
    assert titles == ["blocks_0", "blocks_1"]
    rows: Any = figures.heatmap({"q": [1, 2, 3], "k": [4, 5, 6]})
    assert [t.get_text() for t in rows.axes[0].get_yticklabels()] == ["q", "k"]
    with pytest.raises(BadInput, match="grid"):
        figures.heatmap({"a": np.eye(2), "b": np.eye(3)})


# Bars


def test_few_bars_have_their_values_written_at_their_ends() -> None:
    made: Any = figures.bar(x=["a", "b"], y=[1.5, -2.25])
    texts = {text.get_text(): text.xy for text in made.axes[0].texts}
    assert texts == {"1.5": (0, 1.5), "-2.25": (1, -2.25)}
    many: Any = figures.bar(np.arange(40.0))
    assert not many.axes[0].texts
    bottom, top = made.axes[0].get_ylim()
    assert bottom < -2.25 - 0.2 < 1.5 + 0.2 < top
