"""The PNG and PDF of a figure."""

import io
import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from theseus_track.render.files import figure_files


@pytest.fixture
def figure():
    made = Figure(figsize=(4, 3), dpi=100, layout="constrained")
    axes = made.subplots()
    axes.plot([1, 2, 3])
    axes.set_title("A title")
    return made


def test_png_has_the_figure_size_and_is_readable(figure):
    image = Image.open(io.BytesIO(figure_files(figure)["png"]))
    assert image.size == (400, 300)


def test_pdf_has_one_page_and_truetype_fonts(figure):
    pdf = figure_files(figure)["pdf"]
    assert pdf.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type /Page\b", pdf)) == 1
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf


def test_equal_figures_are_equal_bytes(figure):
    assert figure_files(figure) == figure_files(figure)


def test_the_layout_engine_is_left_as_it_was(figure):
    engine = figure.get_layout_engine()
    figure_files(figure)
    assert figure.get_layout_engine() is engine


def test_a_label_outside_the_canvas_is_not_cut_off():
    made = Figure(figsize=(2, 2), dpi=50)
    made.text(1.5, 0.5, "outside")
    width, height = Image.open(io.BytesIO(figure_files(made)["png"])).size
    assert width > 160
    assert height == pytest.approx(100, abs=6)


def test_a_figure_that_fits_keeps_its_size_without_a_layout_engine():
    made = Figure(figsize=(6, 4), dpi=50)
    made.subplots().set_title("A title")
    assert Image.open(io.BytesIO(figure_files(made)["png"])).size == (300, 200)


def test_text_that_only_looks_like_maths_is_shown_literally(figure):
    figure.axes[0].set_title(r'token "$\frac" $')
    figure.axes[0].set_xlabel(r"$\theta_{1}$")
    assert figure_files(figure)["png"]
    assert not figure.axes[0].title.get_parse_math()
    assert figure.axes[0].xaxis.label.get_parse_math()


def test_a_figure_that_cannot_be_drawn_raises_its_own_error(figure):
    figure.axes[0].imshow(np.eye(3), norm="log").set_clim(-1, -2)
    with pytest.raises(ValueError, match="vmin"):
        figure_files(figure)
