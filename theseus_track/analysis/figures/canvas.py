"""Make figures without pyplot, in the theme, carrying their View."""

import math
import textwrap
from typing import TYPE_CHECKING, Any

from theseus_track.analysis.figures.text import installed, literal
from theseus_track.analysis.figures.theme import HOUSE, Theme
from theseus_track.errors import BadInput
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "attach",
    "caption_axes",
    "figure",
    "label_axes",
    "new_figure",
    "style_axes",
]

_POINTS_PER_INCH = 72.0
_PAD = 0.04
_LINE_SPACING = 1.35
_MEAN_CHAR_WIDTH = 0.56
"""Mean width of a character of the theme's fonts, in units of the font size."""


def figure(rows: int = 1, cols: int = 1, **size: Any) -> "tuple[Figure, Any]":
    """Make a figure and its axes, as `plt.subplots` does, without pyplot.

    Args:
        rows: Rows of axes, >= 1.
        cols: Columns of axes, >= 1.
        **size: `width` and `height` in inches, or `figsize`; `dpi`.

    Returns:
        The figure, and one Axes or, for more than one, an array of Axes as
        `plt.subplots` returns it. Nothing is registered with pyplot, and every
        helper can draw into the axes by `ax=`.

    Raises:
        BadInput: For another keyword.
    """
    unknown = sorted(set(size) - {"width", "height", "figsize", "dpi"})
    if unknown:
        raise BadInput(
            f"figure() has no parameter {unknown[0]!r}; it takes rows, cols, width, "
            "height, figsize and dpi. Set other properties on the returned figure."
        )
    width, height = size.get("figsize") or (3.2 * cols + 0.8, 2.6 * rows + 0.6)
    made = new_figure(
        size.get("width", width), size.get("height", height), HOUSE, size.get("dpi")
    )
    return made, made.subplots(rows, cols)


def new_figure(
    width: float, height: float, theme: Theme, dpi: float | None = None
) -> "Figure":
    """Make an empty figure of a size in inches, on an Agg canvas."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure, SubplotParams
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    made = Figure(
        figsize=(width, height),
        dpi=dpi or theme.dpi,
        facecolor=theme.paper,
        subplotpars=SubplotParams(0.125, 0.11, 0.9, 0.88, 0.2, 0.2),
        layout=ConstrainedLayoutEngine(
            h_pad=_PAD, w_pad=_PAD, hspace=0.02, wspace=0.02
        ),
    )
    FigureCanvasAgg(made)
    return made


def attach(made: "Figure", ax: "Axes", view: View) -> "Figure":
    """Leave the View on the axes, and on the figure while it shows that one alone."""
    ax.theseus_view = view  # type: ignore[attr-defined]
    drawn = [axes for axes in made.axes if hasattr(axes, "theseus_view")]
    made.theseus_view = view if len(drawn) == 1 else None  # type: ignore[attr-defined]
    return made


def style_axes(
    ax: "Axes", theme: Theme, *, grid: Any = "", frame: bool = False
) -> None:
    """Set the theme on axes, whatever rcParams they were made under.

    Args:
        ax: The axes.
        theme: The look.
        grid: The axis whose ticks get grid lines: "x", "y" or "".
        frame: Whether the top and right spines stay.
    """
    ax.set_facecolor(theme.paper)
    ax.minorticks_off()
    ax.grid(visible=False)
    if grid:
        ax.grid(
            visible=True,
            axis=grid,
            color=theme.rule,
            linewidth=theme.stroke,
            linestyle="-",
        )
    ax.set_axisbelow(True)
    ax.margins(0.05)
    for side, spine in ax.spines.items():
        spine.set(
            visible=frame or side in ("left", "bottom"),
            color=theme.ink,
            linewidth=theme.stroke,
        )
    ax.tick_params(
        which="both",
        direction="out",
        bottom=True,
        left=True,
        top=False,
        right=False,
        pad=3.5,
        length=3.0,
        width=theme.stroke,
        color=theme.ink,
        labelsize=theme.small,
        labelcolor=theme.ink,
        labelfontfamily=list(installed(theme.family)),
    )


def label_axes(
    ax: "Axes",
    theme: Theme,
    *,
    title: str | None,
    xlabel: str | None,
    ylabel: str | None,
) -> None:
    """Set the texts that the author wrote; `$...$` in them is maths."""
    font: dict[str, Any] = {
        "fontfamily": list(installed(theme.family)),
        "fontweight": "normal",
        "color": theme.ink,
    }
    if xlabel is not None:
        ax.set_xlabel(
            drawable(xlabel, theme), fontsize=theme.text, labelpad=4.0, **font
        )
    if ylabel is not None:
        ax.set_ylabel(
            drawable(ylabel, theme), fontsize=theme.text, labelpad=4.0, **font
        )
    if title is not None:
        ax.set_title(
            drawable(title, theme),
            loc="left",
            fontsize=theme.title,
            pad=6.0,
            **font,
        )


def drawable(text: str, theme: Theme) -> str:
    """Return an author's text with its line breaks and its maths, else literal."""
    lines = str(text).split("\n")
    return "\n".join(ln if "$" in ln else literal(ln, theme) for ln in lines)


def caption_axes(
    ax: "Axes",
    theme: Theme,
    notes: list[str],
    *,
    marks: tuple[tuple[str, str], ...] = (),
    width: float,
) -> int:
    """Write notes between title and axes.

    Args:
        ax: The axes, already labelled.
        theme: The look.
        notes: Sentences; joined and wrapped.
        marks: (colour, text) pairs, each shown as a coloured square and its text.
        width: Inches that a line may take.

    Returns:
        The number of lines written.
    """
    from matplotlib.offsetbox import AnchoredOffsetbox, HPacker, TextArea, VPacker

    font = {
        "family": list(installed(theme.family)),
        "size": theme.small,
        "weight": "normal",
    }

    def area(text: str, color: str) -> TextArea:
        return TextArea(text, textprops={"color": color, "parse_math": False, **font})

    characters = width * _POINTS_PER_INCH / (theme.small * _MEAN_CHAR_WIDTH)
    lines = textwrap.wrap("; ".join(notes), max(16, math.floor(characters)))
    rows: list[Any] = [area(line, theme.quiet) for line in lines]
    if marks:
        pieces: list[Any] = []
        for color, text in marks:
            pieces += [area("■", color), area(text + "  ", theme.quiet)]
        rows.append(HPacker(children=pieces, pad=0, sep=3, align="baseline"))
    if not rows:
        return 0
    box = AnchoredOffsetbox(
        loc="lower left",
        child=VPacker(children=rows, pad=0, sep=2, align="left"),
        pad=0,
        borderpad=0,
        frameon=False,
        bbox_to_anchor=(0.0, 1.0),
        bbox_transform=ax.transAxes + _up(ax, 4.0),
    )
    ax.add_artist(box)
    if ax.get_title(loc="left"):
        pad = 7.0 + len(rows) * theme.small * _LINE_SPACING
        ax.set_title(ax.get_title(loc="left"), loc="left", pad=pad)
    return len(rows)


def _up(ax: "Axes", points: float) -> Any:
    from matplotlib.transforms import ScaledTranslation

    made = ax.get_figure(root=True)
    assert made is not None
    return ScaledTranslation(0.0, points / _POINTS_PER_INCH, made.dpi_scale_trans)
