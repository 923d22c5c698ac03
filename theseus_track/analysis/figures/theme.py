"""The looks of the helpers' figures: colours, fonts and sizes, as named values."""

import dataclasses
from typing import Any

from theseus_track.errors import BadInput, describe_unknown

__all__ = ["HOUSE", "THEMES", "Theme", "theme_named"]

_SANS = ("DejaVu Sans",)
# The sans fonts of the fallback have symbols that a text face lacks.
_SERIF = ("STIXGeneral", "DejaVu Serif", "DejaVu Sans")
_MONO = ("DejaVu Sans Mono", "DejaVu Sans")
_FALLBACK = (
    "Noto Sans JP",
    "Noto Sans SC",
    "Noto Sans KR",
    "WenQuanYi Zen Hei",
    "IPAexGothic",
    "Noto Emoji",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Everything that the helpers set on a figure; nothing is read from rcParams.

    Attributes:
        name: What a View calls it.
        family: Fonts in order of preference; matplotlib takes each character from
            the first that has it. Those not installed are passed over. The first is
            part of matplotlib, so that a figure looks the same everywhere.
        mono: Fonts of tokens, in the same way.
        maths: Matplotlib's font set for `$...$`.
        text: Size of labels, in points.
        small: Size of tick labels and notes, in points.
        title: Size of titles, in points.
        ink: Colour of texts.
        quiet: Colour of notes.
        axis: Colour of axes and ticks.
        paper: Colour behind everything.
        rule: Colour of grid lines.
        stroke: Width of axes and ticks, in points.
        line: Width of drawn lines, in points.
        sequential: Colormap of values of one sign.
        diverging: Colormap of values of both signs; its middle is 0.
        palette: Colours of groups, told apart by colour-blind readers (M. Okabe and
            K. Ito, 2008, "Color Universal Design", without its yellow and black).
        nan: Colour of cells that are not a number.
        posinf: Colour of cells that are +inf.
        neginf: Colour of cells that are -inf, such as a causal mask's.
        dpi: Pixels per inch of the PNG.
    """

    name: str = "light"
    family: tuple[str, ...] = (*_SANS, *_FALLBACK)
    mono: tuple[str, ...] = (*_MONO, *_FALLBACK)
    maths: str = "dejavusans"
    text: float = 10.0
    small: float = 9.0
    title: float = 11.5
    ink: str = "#262626"
    quiet: str = "#5f5f5f"
    axis: str = "#4a4a4a"
    paper: str = "#ffffff"
    rule: str = "#e6e6e6"
    stroke: float = 0.6
    line: float = 1.7
    sequential: str = "viridis"
    diverging: str = "RdBu_r"
    palette: tuple[str, ...] = (
        "#0072b2",
        "#d55e00",
        "#009e73",
        "#cc79a7",
        "#e69f00",
        "#56b4e9",
        "#7f7f7f",
    )
    nan: str = "#ff00c8"
    posinf: str = "#3d3d3d"
    neginf: str = "#d2d2d2"
    dpi: float = 180.0


HOUSE = Theme()
"""The theme of every helper that is not told another."""

_SERIF_LOOK: dict[str, Any] = {
    "family": (*_SERIF, *_FALLBACK),
    "maths": "stix",
    # Times is a small face: at the same size it is a tenth lower than a sans.
    "text": 11.0,
    "small": 10.0,
    "title": 12.5,
}
_DARK_LOOK: dict[str, Any] = {
    "ink": "#e8e8e8",
    "quiet": "#a8adb5",
    "axis": "#9aa0a8",
    "paper": "#16181d",
    "rule": "#2c3038",
    # A map whose middle is dark: a white one would glare.
    "diverging": "berlin",
    # The same hues, lighter where they would sink into the paper.
    "palette": (
        "#4da6e0",
        "#f08a3c",
        "#2fc496",
        "#e29ac4",
        "#f2b632",
        "#8fd0f5",
        "#a3a3a3",
    ),
    "posinf": "#d9d9d9",
    "neginf": "#3b3f47",
}


def _themes(**looks: dict[str, Any]) -> dict[str, Theme]:
    made = [
        dataclasses.replace(HOUSE, name=name.replace("_", "-"), **look)
        for name, look in looks.items()
    ]
    return {theme.name: theme for theme in made}


THEMES: dict[str, Theme] = _themes(
    light={},
    dark=_DARK_LOOK,
    serif=_SERIF_LOOK,
    serif_dark={**_SERIF_LOOK, **_DARK_LOOK},
)
"""Every theme, by name."""


def theme_named(name: object) -> Theme:
    """Return a theme by its name; the house theme for None.

    Raises:
        BadInput: For an unknown name.
    """
    if name is None:
        return HOUSE
    theme = THEMES.get(name) if isinstance(name, str) else None
    if theme is None:
        raise BadInput(f"theme: {describe_unknown('theme', str(name), THEMES)}")
    return theme
