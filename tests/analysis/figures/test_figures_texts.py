"""Titles and labels wrap, then shrink, and only then are cut."""

import io
import itertools
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from PIL import Image

from tests.analysis.figures.specimens import DIFFICULT, SPECIMENS
from theseus_track.analysis import figures
from theseus_track.analysis.figures.text import drawable, literal, text_extent
from theseus_track.analysis.figures.texts import fitted
from theseus_track.analysis.figures.theme import HOUSE

WIDE = "Attention of the last block, one panel for each head"


def title_of(made: Any) -> Any:
    return next(t for t in made.findobj(Text) if t.get_text().startswith("A"))


@pytest.mark.parametrize("shape", [(2, 4, 4), (6, 8, 8), (4, 4)])
def test_a_title_keeps_all_its_words(shape: tuple[int, ...]) -> None:
    made = figures.heatmap(np.zeros(shape), title=WIDE)
    assert title_of(made).get_text().split() == WIDE.split()


def test_a_long_title_wraps_then_shrinks_then_is_cut() -> None:
    short = fitted("Two words", HOUSE, 3.0, 11.5)
    assert short == ("Two words", False, 11.5)
    wrapped, _, size = fitted(WIDE, HOUSE, 2.4, 11.5)
    assert wrapped.count("\n") == 1
    assert size == 11.5
    smaller, _, size = fitted(" ".join([WIDE] * 2), HOUSE, 2.4, 11.5)
    assert smaller.split() == WIDE.split() * 2
    assert size < 11.5
    cut, _, _ = fitted(" ".join([WIDE] * 9), HOUSE, 2.4, 11.5)
    assert cut.endswith("…")
    assert cut.count("\n") == 3


@pytest.mark.parametrize("text", [WIDE, "x" * 200, "a b " * 60, "日本 " * 20])
def test_no_line_is_wider_than_its_room(text: str) -> None:
    shown, _, size = fitted(text, HOUSE, 2.0, 11.5)
    lines = shown.removesuffix(" …").split("\n")
    assert max(text_extent(line, HOUSE, size) for line in lines) <= 2.0


def test_a_measured_width_is_that_of_the_drawn_text() -> None:
    made: Any
    made, axes = figures.figure()
    text = axes.text(0, 0, "Wm il… 123", fontsize=20, fontfamily=list(HOUSE.family[:1]))
    drawn = text.get_window_extent(made.canvas.get_renderer()).width / made.dpi
    # The window is that of the ink, which begins and ends inside the advance.
    assert text_extent("Wm il… 123", HOUSE, 20) == pytest.approx(drawn, abs=0.06)


@pytest.mark.parametrize(
    ("text", "shown", "maths"),
    [
        (r"$\theta_1$ of head", r"$\theta_1$ of head", True),
        ("cost $5 to $6", "cost $5 to $6", False),
        (r"$x$ for $5", r"$x$ for \$5", True),
        (r"\frac$ $", r"\frac$ $", False),
        (r"$\frac$", r"$\frac$", False),
        ("日 $x$", r"\u65e5 $x$", True),
        ("\ud800 $x$", r"\ud800 $x$", True),
        ("two\nlines", "two\nlines", False),
    ],
)
def test_only_maths_that_can_be_parsed_is_maths(
    text: str, shown: str, maths: bool
) -> None:
    # Where a fallback font has the character, it is shown as it is.
    expected = shown if literal("日", HOUSE) != "日" else shown.replace(r"\u65e5", "日")
    assert drawable(text, HOUSE) == (expected, maths)


@pytest.mark.parametrize(
    ("name", "theme"),
    [(name, "light") for name in (*SPECIMENS, *DIFFICULT)]
    + [(name, "serif") for name in SPECIMENS],
)
def test_nothing_is_clipped_and_no_texts_overlap(name: str, theme: str) -> None:
    made = {**SPECIMENS, **DIFFICULT}[name](theme=theme)
    made.set_dpi(100)
    assert _ink_beyond_the_page(made) == 0
    made.canvas.draw()
    boxes = [(text.get_text(), text.get_window_extent()) for text in _drawn(made)]
    for (one, box), (other, beside) in itertools.combinations(boxes, 2):
        # Boxes have leading; letters overlap only when boxes do by some pixels.
        across = min(box.x1, beside.x1) - max(box.x0, beside.x0)
        down = min(box.y1, beside.y1) - max(box.y0, beside.y0)
        assert across <= 1.5 or down <= 2.5, (one, other)


def _ink_beyond_the_page(made: Any) -> int:
    """Draw a larger page; count the pixels around the figure that are not paper."""
    border, buffer = 30, io.BytesIO()
    page = Bbox.from_bounds(0.0, 0.0, *made.get_size_inches()).padded(border / 100)
    made.savefig(buffer, format="png", bbox_inches=page, dpi=100)
    image = np.asarray(Image.open(buffer).convert("RGB")).astype(int)
    off = np.abs(image - image[0, 0]).max(axis=-1) > 8
    off[border - 1 : 1 - border, border - 1 : 1 - border] = False
    return int(off.sum())


def _drawn(made: Any) -> list[Any]:
    """Return the texts that are drawn: of ticks, those within the limits."""
    ticks = [label for axes in made.findobj(Axes) for label in _ticks(axes, all_=True)]
    kept = [label for axes in made.findobj(Axes) for label in _ticks(axes, all_=False)]
    texts = [text for text in made.findobj(Text) if text not in ticks]
    return [t for t in [*texts, *kept] if t.get_text().strip() and t.get_visible()]


def _ticks(axes: Any, *, all_: bool) -> list[Any]:
    if all_:
        found = [axes.xaxis.majorTicks, axes.yaxis.majorTicks]
    else:
        shown = axes.get_visible() and axes.axison
        found = [axis._update_ticks() for axis in (axes.xaxis, axes.yaxis) if shown]
    return [label for ticks in found for t in ticks for label in (t.label1, t.label2)]
