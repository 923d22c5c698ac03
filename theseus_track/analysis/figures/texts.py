"""Write titles, labels and notes on axes, so that none is cut off or overlaps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from theseus_track.analysis.figures.text import (
    drawable,
    installed,
    seen,
    text_extent,
    words_of,
)
from theseus_track.analysis.figures.theme import Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.offsetbox import VPacker
    from matplotlib.text import Text

__all__ = [
    "caption_axes",
    "fitted",
    "font_of",
    "label_axes",
    "notes_box",
    "room_for",
    "write",
]

_POINTS_PER_INCH = 72.0
_LINE_SPACING = 1.35
_SLACK = 0.08
"""Inches that axes may come out narrower than they were meant to be."""
_TRIES = ((1.0, 1), (0.9, 1), (1.0, 2), (0.9, 3), (0.82, 4))
"""How a long text is fitted: (size, lines) in order; after the last it is cut."""


def font_of(theme: Theme) -> dict[str, Any]:
    """Return the keywords of a text in the theme's font and ink."""
    return {
        "fontfamily": list(installed(theme.family)),
        "math_fontfamily": theme.maths,
        "fontweight": "normal",
        "color": theme.ink,
    }


def fitted(
    text: object, theme: Theme, width: float, size: float
) -> tuple[str, bool, float]:
    """Wrap an author's text to a width; shrink it where it gets long.

    Args:
        text: With the author's line breaks; `$...$` in it is maths.
        theme: The look.
        width: Inches that a line may take.
        size: The size of the font that is tried first, in points.

    Returns:
        The text with line breaks, whether it holds maths, and its size. What does
        not fit into four lines at the smallest size is cut at the end, with "…".
    """
    shown, maths = drawable(text, theme)
    own = shown.split("\n")
    for scale, most in _TRIES:
        lines = [
            wrapped
            for line in own
            for wrapped in _wrap(line, theme, width, scale * size)
        ]
        if len(lines) <= max(most, len(own)):
            return "\n".join(lines), maths, scale * size
    kept = lines[:most]
    return "\n".join([*kept[:-1], f"{kept[-1]} …"]), maths, _TRIES[-1][0] * size


def write(
    target: "Text", text: object, theme: Theme, *, width: float, size: float
) -> None:
    """Set a text of matplotlib's to an author's text, fitted to a width in inches."""
    shown, maths, size = fitted(text, theme, width, size)
    target.set(text=shown, fontsize=size, parse_math=maths, **font_of(theme))


def label_axes(
    ax: "Axes",
    theme: Theme,
    *,
    title: str | None,
    xlabel: str | None,
    ylabel: str | None,
    size: tuple[float, float],
    beside: float = 0.0,
) -> None:
    """Set the texts that the author wrote; `$...$` in them is maths.

    Args:
        ax: The axes.
        theme: The look.
        title: Above the axes, from their left edge.
        xlabel: Below them.
        ylabel: Beside them.
        size: Width and height of the axes in inches.
        beside: Inches to the right of the axes that a title may reach into.
    """
    if xlabel is not None:
        label = ax.set_xlabel("", labelpad=4.0)
        write(label, xlabel, theme, width=size[0] + 0.3, size=theme.text)
    if ylabel is not None:
        label = ax.set_ylabel("", labelpad=4.0)
        write(label, ylabel, theme, width=max(size[1], 1.2) + 0.3, size=theme.text)
    if title is not None:
        label = ax.set_title("", loc="left", pad=6.0)
        write(label, title, theme, width=size[0] + beside - _SLACK, size=theme.title)


def room_for(
    theme: Theme,
    *,
    title: str | None,
    ylabel: str | None,
    size: tuple[float, float],
    beside: float = 0.0,
) -> tuple[float, float]:
    """Return the inches that wrapped texts take: beside the axes, and above them.

    Args:
        theme: The look.
        title: As `label_axes` will get it.
        ylabel: In the same way.
        size: Width and height of the axes in inches.
        beside: Inches to the right of the axes that a title may reach into.
    """
    left = _lines(ylabel, theme, max(size[1], 1.2) + 0.3, theme.text)
    above = _lines(title, theme, size[0] + beside - _SLACK, theme.title)
    return left, above


def caption_axes(
    ax: "Axes",
    theme: Theme,
    notes: Sequence[str],
    *,
    marks: Sequence[tuple[str, str]] = (),
    width: float,
) -> None:
    """Write notes between title and axes.

    Args:
        ax: The axes, already labelled.
        theme: The look.
        notes: Sentences; joined and wrapped.
        marks: (colour, text) pairs, each shown as a coloured square and its text.
        width: Inches that a line may take.
    """
    from matplotlib.offsetbox import AnchoredOffsetbox

    child, rows = notes_box(theme, notes, marks, width)
    if child is None:
        return
    box = AnchoredOffsetbox(
        loc="lower left",
        child=child,
        pad=0,
        borderpad=0,
        frameon=False,
        bbox_to_anchor=(0.0, 1.0),
        bbox_transform=ax.transAxes + _up(ax, 4.0),
    )
    ax.add_artist(box)
    if ax.get_title(loc="left"):
        pad = 7.0 + rows * theme.small * _LINE_SPACING
        ax.set_title(ax.get_title(loc="left"), loc="left", pad=pad)


def notes_box(
    theme: Theme,
    notes: Sequence[str],
    marks: Sequence[tuple[str, str]],
    width: float,
) -> "tuple[VPacker | None, int]":
    """Return notes and marks as lines of a width in inches, and how many there are."""
    from matplotlib.offsetbox import HPacker, TextArea, VPacker

    font = {
        "family": list(installed(theme.family)),
        "size": theme.small,
        "weight": "normal",
    }

    def area(text: str, color: str) -> TextArea:
        return TextArea(text, textprops={"color": color, "parse_math": False, **font})

    lines = _wrap("; ".join(notes), theme, width, theme.small) if notes else []
    rows: list[Any] = [area(line, theme.quiet) for line in lines]
    pieces: list[Any] = []
    for color, text in marks:
        pieces += [area("■", color), area(text + "  ", theme.quiet)]
    if pieces:
        rows.append(HPacker(children=pieces, pad=0, sep=3, align="baseline"))
    if not rows:
        return None, 0
    return VPacker(children=rows, pad=0, sep=2, align="left"), len(rows)


def _lines(text: str | None, theme: Theme, width: float, size: float) -> float:
    if not text:
        return 0.0
    shown, _, points = fitted(text, theme, width, size)
    return (shown.count("\n") + 1) * points * _LINE_SPACING / _POINTS_PER_INCH


def _wrap(line: str, theme: Theme, width: float, size: float) -> list[str]:
    """Break one line between words, and inside a word that is too long for a line."""
    lines = [""]
    for word in words_of(line):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if text_extent(seen(longer), theme, size) <= width:
            lines[-1] = longer
            continue
        pieces = _broken(word, theme, width, size)
        lines = [*filter(None, lines), *pieces]
    return lines


def _broken(word: str, theme: Theme, width: float, size: float) -> list[str]:
    if "$" in word:
        return [word]
    pieces = [""]
    for char in word:
        if pieces[-1] and text_extent(pieces[-1] + char, theme, size) > width:
            pieces.append("")
        pieces[-1] += char
    return pieces


def _up(ax: "Axes", points: float) -> Any:
    from matplotlib.transforms import ScaledTranslation

    made = ax.get_figure(root=True)
    assert made is not None
    return ScaledTranslation(0.0, points / _POINTS_PER_INCH, made.dpi_scale_trans)
