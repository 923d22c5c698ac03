"""No helper is stopped by a value: each one is drawn, or refused in one line."""

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from matplotlib.text import Text

from tests.analysis.figures.specimens import TOKENS
from theseus_track.analysis import figures
from theseus_track.errors import BadInput
from theseus_track.render.files import figure_files

HELPERS = ["heatmap", "bar", "line", "scatter", "histogram", "token_strip"]
REAL = [
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
    ml_dtypes.int4,
    np.bool_,
    np.float16,
    np.int8,
    np.uint64,
]


def draw(helper: str, values: Any, **options: Any) -> Any:
    """Call a helper with values as the numbers that it draws."""
    if helper == "token_strip":
        tokens = [f"t{index}" for index in range(np.size(values))]
        made = figures.token_strip(values, tokens, **options)
    elif helper == "scatter":
        made = figures.scatter(x=np.arange(np.size(values)), y=values, **options)
    elif helper == "heatmap":
        made = figures.heatmap(values, **options)
    else:
        made = getattr(figures, helper)(values, **options)
    made.set_dpi(50)
    made.canvas.draw()
    return made


def said(made: Any) -> str:
    return " | ".join(text.get_text() for text in made.findobj(Text))


@pytest.mark.parametrize("helper", HELPERS)
@pytest.mark.parametrize("dtype", REAL)
def test_every_real_dtype_is_drawn(helper: str, dtype: Any) -> None:
    view = figures.view_of(draw(helper, np.array([0, 1, 1, 0]).astype(dtype)))
    assert view is not None
    assert all(array.dtype.kind in "iufb" for array in view.arrays.values())


@pytest.mark.parametrize("helper", [*HELPERS, "image_grid"])
@pytest.mark.parametrize("kind", ["complex", "key"])
def test_what_has_no_colour_or_height_is_refused_in_one_line(
    helper: str, kind: str
) -> None:
    jax = pytest.importorskip("jax")
    values = np.ones(3, np.complex64) if kind == "complex" else jax.random.key(0)
    with pytest.raises(BadInput) as caught:
        draw(helper, values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("helper", HELPERS)
@pytest.mark.parametrize(
    "values",
    [
        [np.nan, np.nan, np.nan],
        [1.0, np.inf, -np.inf],
        [0.0, 0.0, 0.0],
        [3e38, -3e38, 1.0],
        [1e308, -1e308, 0.0],
        [5e-324, 0.0, 1.0],
    ],
    ids=["nan", "inf", "constant", "float32", "float64", "denormal"],
)
def test_every_number_is_drawn(helper: str, values: list[float]) -> None:
    made = draw(helper, np.array(values))
    counts = said(made)
    assert ("3 NaN" in counts) == np.isnan(values).all()
    assert ("inf" in counts) == np.isinf(values).any()


@pytest.mark.parametrize("helper", HELPERS)
def test_nothing_says_that_there_is_no_data(helper: str) -> None:
    assert "no data" in said(draw(helper, np.zeros(0)))


def test_no_images_says_that_there_is_no_data() -> None:
    assert "no data" in said(figures.image_grid(np.zeros((0, 4, 4))))


@pytest.mark.parametrize("helper", ["heatmap", "bar", "line", "histogram"])
def test_one_number_is_drawn(helper: str) -> None:
    assert figures.view_of(draw(helper, 3.5))


@pytest.mark.parametrize("helper", ["heatmap", "bar", "line", "histogram"])
@pytest.mark.parametrize("form", ["list", "dict", "series", "frame"])
def test_every_container_is_drawn(helper: str, form: str) -> None:
    pandas = pytest.importorskip("pandas")
    data: dict[str, Any] = {"a": [1.0, 2.0], "b": [3.0, 5.0]}
    forms = {
        "list": data["a"],
        "dict": data,
        "series": pandas.Series(data["a"], name="a"),
        "frame": pandas.DataFrame(data),
    }
    assert figures.view_of(draw(helper, forms[form]))


@pytest.mark.parametrize("helper", ["heatmap", "bar", "line", "histogram"])
@pytest.mark.parametrize("nested", [False, True])
def test_three_dimensions_are_small_multiples(helper: str, nested: bool) -> None:
    values = np.arange(12.0).reshape(2, 3, 2)
    view: Any = figures.view_of(draw(helper, values.tolist() if nested else values))
    panels = view.arrays["values"] if helper == "heatmap" else view.labels["panels"]
    assert len(panels) == 2


@pytest.mark.parametrize("helper", ["line", "bar", "histogram"])
def test_three_dimensions_need_a_figure_of_their_own(helper: str) -> None:
    _, axes = figures.figure()
    with pytest.raises(BadInput, match="ax"):
        getattr(figures, helper)(np.zeros((2, 3, 2)), ax=axes)


@dataclasses.dataclass
class Author:
    """A helper and where it takes texts from data."""

    name: str
    made: Any


def labelled() -> list[Author]:
    count = len(TOKENS)
    numbers = np.arange(float(count))
    grid = np.ones((2, 3, 3))
    return [
        Author("heatmap", figures.heatmap(numbers[None], xticklabels=TOKENS)),
        Author("bar", figures.bar(x=TOKENS, y=numbers)),
        Author("line", figures.line(x=TOKENS, y=numbers)),
        Author("legend", figures.scatter(x=numbers, y=numbers, hue=TOKENS)),
        Author("tokens", figures.token_strip(numbers, TOKENS)),
        Author("images", figures.image_grid(grid, titles=TOKENS[:2])),
        Author("names", figures.histogram(dict.fromkeys(TOKENS, numbers))),
        Author("panels", figures.grid("line", dict.fromkeys(TOKENS, numbers))),
    ]


@pytest.mark.slow
def test_texts_from_data_are_literal_everywhere(recwarn: Any) -> None:
    # Draws eight figures, two of them with ten panels or series, as PNG and PDF.
    for author in labelled():
        files = figure_files(author.made)
        assert len(files["pdf"]) > 1000, author.name
    assert not recwarn.list


@pytest.mark.parametrize(
    "title",
    [*TOKENS, "cost $5 to $6", r"\frac$ $", r"$\frac$", "a$b", "$ $", "日本 $x$", ""],
)
def test_any_title_is_drawn(title: str, recwarn: Any) -> None:
    for made in (
        figures.heatmap(np.eye(2), title=title, xlabel=title, ylabel=title),
        figures.grid("line", {title: [1, 2]}, title=title, xlabel=title),
    ):
        made.set_dpi(50)
        made.canvas.draw()
    assert not recwarn.list


@pytest.mark.slow
def test_two_hundred_figures_leave_nothing_behind() -> None:
    # Makes 220 figures, and draws every fourth, to see the memory that they leave.
    pyplot = pytest.importorskip("matplotlib.pyplot")
    resource = pytest.importorskip("resource")
    values = np.random.default_rng(0).normal(size=(64, 64))
    bare: Any = {"cbar": False, "xticklabels": False, "yticklabels": False}
    opened = list(pyplot.get_fignums())

    def make(count: int) -> None:
        for index in range(count):
            made = figures.heatmap(values, **bare)
            if index % 4 == 0:
                made.set_dpi(40)
                made.canvas.draw()

    make(20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    make(200)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Kilobytes on Linux, bytes on macOS: this is the stricter reading of both.
    assert after - before < 50_000
    assert pyplot.get_fignums() == opened


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    [(1024, 1024), (2048, 64), pytest.param((1, 5000), id="1x5000")],
)
def test_large_arrays_are_small_files(shape: tuple[int, int]) -> None:
    # Draws a million cells as PNG and PDF.
    values = np.random.default_rng(0).normal(size=shape)
    files = figure_files(figures.heatmap(values, title="Large", xlabel="x"))
    assert len(files["png"]) + len(files["pdf"]) < 1_000_000
    # The cells are pixels, the texts are text in TrueType fonts.
    assert b"/FontFile2" in files["pdf"]
    assert b"/Subtype /Image" in files["pdf"]
    assert b"/Type3" not in files["pdf"]


def test_a_reduction_keeps_lowest_mean_and_highest() -> None:
    values = np.random.default_rng(0).normal(size=(768, 6))
    values[0, 0] = np.nan
    view: Any = figures.view_of(figures.heatmap(values))
    blocks = values.reshape(384, 2, 6)
    np.testing.assert_allclose(
        view.arrays["low"][1:], blocks.min(axis=1)[1:], rtol=1e-6
    )
    np.testing.assert_allclose(
        view.arrays["high"][1:], blocks.max(axis=1)[1:], rtol=1e-6
    )
    # The finite half of the block with a NaN still has its extremes.
    assert view.arrays["low"][0, 0] == np.float32(values[1, 0])
    assert np.isnan(view.arrays["values"][0, 0])
    assert "mean" in view.caption
