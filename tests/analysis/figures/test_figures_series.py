"""What bars, lines and points show, and the views that they carry."""

import functools
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex

from theseus_track.analysis import figures
from theseus_track.analysis.figures.theme import HOUSE
from theseus_track.errors import BadInput

# Untyped here: a test reads what matplotlib's own types leave open.
bar: Any = figures.bar
figure: Any = figures.figure
line: Any = figures.line
scatter: Any = figures.scatter
view_of: Any = figures.view_of

PLAIN: dict[str, Any] = {"saturation": 1.0, "errorbar": None}


def heights(made):
    return [patch.get_height() for patch in made.axes[0].patches]


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def legend(made):
    found = made.axes[0].get_legend()
    return [] if found is None else [text.get_text() for text in found.get_texts()]


def test_bars_stand_at_their_categories_with_their_values():
    made = bar(x=["b", "a"], y=[1.0, 2.0], **PLAIN)
    assert heights(made) == [1.0, 2.0]
    assert [patch.get_x() for patch in made.axes[0].patches] == [-0.4, 0.6]
    assert labels(made.axes[0].xaxis) == ["b", "a"]
    assert to_hex(made.axes[0].patches[0].get_facecolor()) == HOUSE.palette[0]


def test_bars_agree_with_seaborn():
    seaborn = pytest.importorskip("seaborn")
    random = np.random.default_rng(0)
    data = {
        "place": random.choice(["a", "b", "c"], 60).tolist(),
        "value": random.normal(size=60) + 3,
        "kind": random.choice(["u", "v"], 60).tolist(),
    }
    _, axes = figure()
    pandas = pytest.importorskip("pandas")
    names = {"x": "place", "y": "value", "hue": "kind"}
    seaborn.barplot(pandas.DataFrame(data), **names, errorbar="sd", ax=axes)
    ours = bar(data, **names, errorbar="sd")

    def boxes(ax):
        patches = [p for p in ax.patches if p.get_width()]
        return sorted((p.get_x(), p.get_width(), p.get_height()) for p in patches)

    np.testing.assert_allclose(boxes(ours.axes[0]), boxes(axes), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", ["ci", "pi", "se", "sd"])
def test_error_bars_agree_with_seaborn(method):
    seaborn = pytest.importorskip("seaborn")
    values = np.random.default_rng(1).normal(size=40)
    _, axes = figure()
    seaborn.barplot(y=values, errorbar=method, seed=0, n_boot=4000, ax=axes)
    view = view_of(bar(y=values, errorbar=method, seed=0, n_boot=4000))
    low, high = axes.lines[0].get_ydata()
    # The bootstrap is random: its ends agree within a tenth of the standard error.
    slack = 0.02 if method == "ci" else 1e-9
    assert view.arrays["low"][0] == pytest.approx(low, abs=slack)
    assert view.arrays["high"][0] == pytest.approx(high, abs=slack)


def test_bars_lie_down_for_text_on_y_and_begin_on_top():
    made = bar(x=[1.0, 2.0], y=["p", "q"], **PLAIN)
    assert [patch.get_width() for patch in made.axes[0].patches] == [1.0, 2.0]
    bottom, top = made.axes[0].get_ylim()
    assert bottom > top


def test_groups_stand_side_by_side_with_a_legend():
    made = bar(
        x=["a", "a", "b", "b"], y=[1, 2, 3, 4], hue=["u", "v", "u", "v"], **PLAIN
    )
    assert sorted(heights(made)) == [1, 2, 3, 4]
    assert legend(made) == ["u", "v"]
    assert len({patch.get_x() for patch in made.axes[0].patches}) == 4


def test_bars_of_wide_data_order_estimator_and_formatter():
    assert heights(bar({"a": [1, 2], "b": [2, 5]}, **PLAIN)) == [1.5, 3.5]
    assert heights(bar([1, 2, 3], **PLAIN)) == [1, 2, 3]
    assert heights(bar({"a": [1, 2, 9]}, estimator="median", **PLAIN)) == [2]
    assert heights(bar({"a": [1, 2, 9]}, estimator=np.max, **PLAIN)) == [9]
    made = bar(x=["a", "b"], y=[1, 2], order=["b"], formatter=str.upper, **PLAIN)
    assert (heights(made), labels(made.axes[0].xaxis)) == ([2], ["B"])


def test_bars_on_native_and_log_scales_and_unfilled():
    made = bar(x=[10, 30], y=[1, 100], native_scale=True, log_scale=True, fill=False)
    assert [round(p.get_x() + p.get_width() / 2) for p in made.axes[0].patches] == [
        10,
        30,
    ]
    assert made.axes[0].get_yscale() == "log"
    assert made.axes[0].patches[0].get_facecolor()[3] == 0.0


def test_missing_values_are_counted():
    made = bar({"a": 1.0, "b": float("nan")}, errorbar=None)
    assert view_of(made).labels["notes"] == ["1 NaN of 2"]
    assert "1 NaN of 2" in view_of(line([1.0, np.nan])).labels["notes"]


def test_categories_are_literal_text():
    made = bar(x=["$a$", "\n"], y=[1, 2], **PLAIN)
    assert labels(made.axes[0].xaxis) == ["$a$", r"\n"]
    assert not made.axes[0].xaxis.get_ticklabels()[0].get_parse_math()


def test_a_line_over_its_index():
    made = line([3.0, 1.0, 2.0], title="t", xlabel="x", ylabel="y")
    (drawn,) = made.axes[0].lines
    assert drawn.get_xydata().tolist() == [[0, 3], [1, 1], [2, 2]]
    axes = made.axes[0]
    assert (axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()) == (
        "t", "x", "y",
    )  # fmt: skip


def test_points_at_one_x_are_averaged_and_said():
    made = line(x=[1, 0, 1, 0], y=[1.0, 2.0, 3.0, 6.0], errorbar=None)
    assert made.axes[0].lines[0].get_xydata().tolist() == [[0, 4], [1, 2]]
    assert "mean" in view_of(made).caption


def test_estimator_none_draws_all_points_and_units_separate_lines():
    made = line(x=[0, 1, 0, 1], y=[1, 2, 3, 4], units=[0, 0, 1, 1], estimator=None)
    assert [drawn.get_ydata().tolist() for drawn in made.axes[0].lines] == [
        [1, 2],
        [3, 4],
    ]


def test_an_error_band_is_drawn_and_kept():
    x, y = np.tile([0, 1], 20), np.random.default_rng(0).normal(size=40)
    made = line(x=x, y=y, errorbar="sd")
    assert len(made.axes[0].collections) == 1
    expected = y[x == 0].mean() - y[x == 0].std(ddof=1)
    assert view_of(made).arrays["low"][0] == pytest.approx(expected)
    bars = line(x=x, y=y, errorbar="sd", err_style="bars")
    assert len(bars.axes[0].collections) == 1


def test_lines_of_wide_data_differ_in_colour_and_dash():
    made = line({"q": [1, 2], "k": [3, 4]})
    first, second = made.axes[0].lines
    assert (first.get_color(), second.get_color()) == HOUSE.palette[:2]
    assert first.get_linestyle() == "-"
    assert second.get_linestyle() == "--"
    assert legend(made) == ["q", "k"]


def test_lines_with_numeric_hue_follow_a_colormap_with_a_brief_legend():
    made = line(x=np.tile([0, 1], 12), y=np.arange(24), hue=np.repeat(np.arange(12), 2))
    assert len(made.axes[0].lines) == 12
    assert len(legend(made)) == 5


def test_sort_orient_and_category_axis():
    assert line(x=[2, 1], y=[1, 2], sort=False).axes[0].lines[0].get_xdata()[0] == 2
    turned = line(x=[5, 6], y=[1, 0], orient="y").axes[0].lines[0]
    assert turned.get_xydata().tolist() == [[6, 0], [5, 1]]
    assert labels(line(x=["b", "a"], y=[1, 2]).axes[0].xaxis) == ["b", "a"]


def test_points_colours_sizes_and_markers():
    made = scatter(
        {"x": [1, 2, 3], "y": [4, 5, 6], "kind": ["a", "b", "a"], "n": [1, 2, 3]},
        x="x", y="y", hue="kind", style="kind", size="n", sizes=(10, 30),
    )  # fmt: skip
    circles, crosses = made.axes[0].collections
    assert circles.get_offsets().tolist() == [[1, 4], [3, 6]]
    assert crosses.get_sizes().tolist() == [20.0]
    assert to_hex(crosses.get_facecolor()[0]) == HOUSE.palette[1]
    assert legend(made) == ["kind", "a", "b", "n", "1", "2", "3"]
    assert (made.axes[0].get_xlabel(), made.axes[0].get_ylabel()) == ("x", "y")


def test_points_that_are_not_finite_are_left_out_and_counted():
    view = view_of(scatter(x=[1.0, np.nan, 3.0], y=[1.0, 2.0, np.inf]))
    assert view.arrays["x"].tolist() == [1.0]
    assert view.labels["notes"] == ["1 NaN of 3", "1 inf of 3"]


def test_hue_order_palette_and_legend_options():
    made = scatter(
        x=[1, 2], y=[1, 2], hue=["a", "b"], hue_order=["b", "a"],
        palette={"a": "red", "b": "blue"}, legend=False,
    )  # fmt: skip
    assert view_of(made).scale["colors"] == ["#0000ff", "#ff0000"]
    assert legend(made) == []


def test_a_data_frame_and_its_column_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"step": [1, 2], "loss": [3.0, 2.0]})
    made = line(frame, x="step", y="loss")
    assert (made.axes[0].get_xlabel(), made.axes[0].get_ylabel()) == ("step", "loss")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: line({"a": [1]}, x="b", y="a"), "'b'"),
        (lambda: line(x=[1, 2], y=[1]), "lengths"),
        (lambda: line(x="a", y=[1]), "data"),
        (bar, "nothing to draw"),
        (lambda: scatter(x=[1]), "y="),
        (lambda: line(np.zeros((2, 2, 2, 2))), "2, 2, 2, 2"),
        (lambda: bar(x=["a"], y=["b"]), "numbers"),
    ],
)
def test_data_that_cannot_be_read_is_refused(call, said):
    with pytest.raises(BadInput, match=said):
        call()


@pytest.mark.parametrize(
    "draw",
    [
        functools.partial(bar, x=[], y=[]),
        functools.partial(line, []),
        functools.partial(scatter, x=[], y=[]),
        functools.partial(line, {}),
    ],
)
def test_empty_data_is_an_empty_figure(draw):
    made = draw(title="t")
    made.canvas.draw()
    assert made.axes[0].get_title(loc="left") + made.axes[0].get_title() == "t"
    assert not any(line.get_xdata().size for line in made.axes[0].lines)


def test_axes_of_figure_are_drawn_into_and_keep_their_views():
    made, axes = figure(1, 2, width=6, height=3)
    assert made.get_size_inches().tolist() == [6, 3]
    assert made.canvas.manager is None
    assert line([1, 2], ax=axes[0]) is made
    assert view_of(made).kind == "line"
    assert bar([1, 2], ax=axes[1]) is made
    assert view_of(made) is None
    assert [view_of(ax).kind for ax in axes] == ["line", "bar"]


def test_figure_refuses_other_keywords():
    with pytest.raises(BadInput, match="colour"):
        figure(colour="red")


def test_equal_data_give_equal_error_bars_without_a_seed():
    values = {"y": np.random.default_rng(0).normal(size=30)}
    first, again = (view_of(bar(values, y="y")).arrays["low"] for _ in range(2))
    np.testing.assert_array_equal(first, again)
