"""Write the title and the notes of a figure of several panels above all of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from theseus_track.analysis.figures.texts import fitted, font_of, notes_box
from theseus_track.analysis.figures.theme import Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["header_height", "write_header"]

_POINTS_PER_INCH = 72.0
_LINE_SPACING = 1.3
_MARGIN = 0.07


def header_height(
    theme: Theme,
    title: str | None,
    notes: Sequence[str],
    marks: Sequence[tuple[str, str]],
    width: float,
) -> float:
    """Return how many inches a header takes in a figure of a width in inches."""
    _, heights = _header(theme, title, notes, marks, width)
    return sum(heights) + _MARGIN if any(heights) else 0.0


def write_header(
    made: "Figure",
    theme: Theme,
    title: str | None,
    notes: Sequence[str],
    marks: Sequence[tuple[str, str]],
) -> None:
    """Write the header and keep the axes below it.

    Args:
        made: A figure with a constrained layout.
        theme: The look.
        title: What the author wrote, or None.
        notes: Sentences; joined and wrapped.
        marks: (colour, text) pairs, each shown as a coloured square and its text.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.offsetbox import AnchoredOffsetbox

    width, height = made.get_size_inches()
    (shown, maths, size), heights = _header(theme, title, notes, marks, width)
    if not any(heights):
        return
    left, top = _MARGIN / width, 1.0 - _MARGIN / height
    if shown:
        made.text(
            left,
            top,
            shown,
            fontsize=size,
            va="top",
            ha="left",
            parse_math=maths,
            **font_of(theme),
        )
    child, _ = notes_box(theme, notes, marks, width - 2 * _MARGIN)
    if child is not None:
        box = AnchoredOffsetbox(
            loc="upper left",
            child=child,
            pad=0,
            borderpad=0,
            frameon=False,
            bbox_to_anchor=(left, top - heights[0] / height),
            bbox_transform=made.transFigure,
        )
        # The layout would make room for it a second time.
        box.set_in_layout(False)
        made.add_artist(box)
    engine = made.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        used = (sum(heights) + _MARGIN) / height
        engine.set(rect=(0.0, 0.0, 1.0, 1.0 - used))


def _header(
    theme: Theme,
    title: str | None,
    notes: Sequence[str],
    marks: Sequence[tuple[str, str]],
    width: float,
) -> tuple[tuple[str, bool, float], tuple[float, float]]:
    room = width - 2 * _MARGIN
    text = fitted(title, theme, room, theme.title) if title else ("", False, 0.0)
    lines = text[0].count("\n") + 1 if title else 0
    _, rows = notes_box(theme, notes, marks, room)
    return text, (
        lines * text[2] * _LINE_SPACING / _POINTS_PER_INCH,
        rows * (theme.small * _LINE_SPACING + 2.0) / _POINTS_PER_INCH,
    )
