"""The look of the helpers' figures: colours, fonts and sizes, as one value."""

import dataclasses

__all__ = ["HOUSE", "Theme"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Everything that the helpers set on a figure; nothing is read from rcParams.

    Attributes:
        family: Fonts in order of preference; matplotlib takes each character from
            the first that has it. Those not installed are passed over.
        text: Size of labels, in points.
        small: Size of tick labels and notes, in points.
        title: Size of titles, in points.
        ink: Colour of texts and axes.
        quiet: Colour of notes.
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

    family: tuple[str, ...] = (
        "DejaVu Sans",
        "Noto Sans JP",
        "Noto Sans SC",
        "Noto Sans KR",
        "WenQuanYi Zen Hei",
        "IPAexGothic",
        "Noto Emoji",
    )
    text: float = 9.0
    small: float = 8.0
    title: float = 10.0
    ink: str = "#262626"
    quiet: str = "#666666"
    paper: str = "#ffffff"
    rule: str = "#e8e8e8"
    stroke: float = 0.7
    line: float = 1.6
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
    dpi: float = 150.0


HOUSE = Theme()
"""The theme of every helper."""
