"""Label cells and categories as densely as they stay legible."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from theseus_track.analysis.figures.text import literal, text_extent
from theseus_track.analysis.figures.theme import Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["count_cells", "label_cells", "text_width", "thinned"]

_POINTS_PER_INCH = 72.0
_LINE_HEIGHT = 1.3
_NUMBERS = 0.42
"""Numbers of columns are at least so far apart, in inches; closer is a ruler."""
_FEW = 16
"""Up to so many cells are all numbered where the numbers fit."""


def thinned(count: int, step: int) -> list[int]:
    """Return every `step`-th index out of `count`, the first and the last included."""
    if count == 0:
        return []
    kept = list(range(0, count, step))
    if kept[-1] != count - 1:
        if len(kept) > 1 and count - 1 - kept[-1] < step:
            kept.pop()
        kept.append(count - 1)
    return kept


def text_width(texts: Iterable[object], theme: Theme) -> float:
    """Return the width of the widest text at the tick size, in inches."""
    shown = (literal(text, theme) for text in texts)
    return max((text_extent(text, theme, theme.small) for text in shown), default=0.0)


def label_cells(
    ax: "Axes",
    axis: str,
    labels: Sequence[str],
    *,
    positions: Sequence[float],
    cell: float,
    step: int | None,
    theme: Theme,
) -> int:
    """Write one label per cell, thinned so that none overlaps another.

    Args:
        ax: The axes.
        axis: "x" or "y".
        labels: A text per cell, shown literally; none for an axis without labels.
        positions: Where each cell is, in data coordinates.
        cell: Length of a cell along the axis, in inches.
        step: Which to show: every `step`-th from the first, or None to choose; then
            the last is shown too.
        theme: The look.

    Returns:
        n, where every n-th label is shown; 1 when all are.
    """
    texts = [literal(label, theme) for label in labels]
    line = theme.small * _LINE_HEIGHT / _POINTS_PER_INCH
    width = text_width(texts, theme) + 0.06
    turned = axis == "x" and width > cell and not all(map(_is_number, texts))
    needed = width if axis == "x" and not turned else line
    if step is None:
        step = max(1, math.ceil(needed / cell)) if texts else 1
        kept = thinned(len(texts), step)
    else:
        kept = list(range(0, len(texts), step))
    which = ax.xaxis if axis == "x" else ax.yaxis
    which.set_ticks(
        [positions[index] for index in kept], labels=[texts[index] for index in kept]
    )
    for label in which.get_ticklabels():
        label.set_parse_math(False)
        if turned:
            label.set(rotation=90)
    return step


def count_cells(
    ax: "Axes", axis: str, total: int, *, block: int, length: float, theme: Theme
) -> None:
    """Number cells that have no names, in steps that people count in.

    Args:
        ax: The axes.
        axis: "x" or "y".
        total: Cells of the data.
        block: How many of them became one drawn cell.
        length: Length of the axis, in inches.
        theme: The look.
    """
    line = 1.5 * theme.small * _LINE_HEIGHT / _POINTS_PER_INCH
    wide = text_width([str(total)], theme)
    if axis == "x":
        needed = wide + 0.1 if total <= _FEW else max(wide + 0.2, _NUMBERS)
    else:
        needed = line if total <= _FEW else 1.2 * line
    kept = thinned(total, _round_up(max(1, math.ceil(needed * total / length))))
    which = ax.xaxis if axis == "x" else ax.yaxis
    which.set_ticks(
        [(index + 0.5) / block for index in kept], labels=[str(index) for index in kept]
    )


def _round_up(step: int) -> int:
    """Return the next of 1, 2, 5, 10, 20, 50, ...: steps that people count in."""
    power: int = 10 ** int(math.log10(step))
    return next(power * nice for nice in (1, 2, 5, 10) if power * nice >= step)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
