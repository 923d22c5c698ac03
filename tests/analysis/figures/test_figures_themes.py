"""The looks: names, where they come from, and what they promise."""

from typing import Any, ClassVar

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from tests.analysis.figures.specimens import SPECIMENS
from theseus_track.analysis import AnalysisBase, draw_hash, figures
from theseus_track.analysis.figures.theme import HOUSE, THEMES
from theseus_track.errors import BadInput
from theseus_track.render.files import figure_files


class Plain(AnalysisBase):
    TARGET = object

    def plot(self, values: Any) -> Any:
        return self.line(values)


class Dark(Plain):
    THEME: ClassVar[str] = "dark"


def paper(made: Any) -> str:
    return to_hex(made.get_facecolor())


def luminance(color: str) -> float:
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in to_rgb(color)
    ]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES.values(), ids=list(THEMES))
def test_texts_and_colours_stand_out_from_the_paper(theme: Any) -> None:
    assert contrast(theme.ink, theme.paper) >= 7.0
    assert contrast(theme.quiet, theme.paper) >= 4.5
    # WCAG asks for 3 of graphics; the light sky blue of the palette is a little less.
    assert all(contrast(color, theme.paper) >= 2.2 for color in theme.palette)


@pytest.mark.parametrize("name", THEMES)
def test_a_theme_by_name(name: str) -> None:
    made: Any = figures.heatmap([[1.0, -2.0]], title="t", theme=name)
    assert paper(made) == THEMES[name].paper
    (title,) = made.findobj(lambda artist: getattr(artist, "_text", "") == "t")
    fonts = title.get_fontfamily()
    assert ("STIXGeneral" in fonts) == name.startswith("serif")


def test_an_unknown_theme_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match="serif-dark"):
        figures.line([1, 2], theme="sepia")
    with pytest.raises(BadInput, match="sepia"):
        type("Sepia", (Plain,), {"THEME": "sepia"})


def test_an_analysis_draws_in_its_theme() -> None:
    assert paper(Plain().plot([1, 2])) == HOUSE.paper
    assert paper(Dark().plot([1, 2])) == THEMES["dark"].paper
    assert paper(Dark().line([1, 2], theme="light")) == HOUSE.paper
    assert paper(Dark().figure()[0]) == THEMES["dark"].paper


def test_the_theme_is_part_of_how_an_analysis_draws() -> None:
    assert draw_hash(Plain()) != draw_hash(Dark())


def test_axes_of_a_figure_keep_its_theme() -> None:
    _, axes = figures.figure(1, 2, theme="dark")
    figures.line([1, 2], ax=axes[0])
    assert to_hex(axes[0].get_facecolor()) == THEMES["dark"].paper
    assert to_hex(axes[1].get_facecolor()) == THEMES["dark"].paper


@pytest.mark.slow
def test_the_global_settings_do_not_change() -> None:
    # Makes every specimen.
    before = dict(mpl.rcParams)
    for draw in SPECIMENS.values():
        draw(theme="serif-dark")
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("theme", ["light", "serif"])
def test_fonts_are_embedded_as_truetype(theme: str) -> None:
    pdf = figure_files(figures.line([1, 2], title="Title", theme=theme))["pdf"]
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    assert (b"STIX" in pdf) == (theme == "serif")
