"""A View: what a plotting helper drew, as data, so that it can be drawn again."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from theseus_track.errors import BadInput
from theseus_track.records.strict_json import Json

__all__ = ["View", "view_of"]

_KINDS = (
    "heatmap",
    "bar",
    "line",
    "scatter",
    "histogram",
    "image_grid",
    "token_strip",
    "grid",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a plotting helper drew, as data.

    Attributes:
        kind: "heatmap", "bar", "line", "scatter", "histogram", "image_grid",
            "token_strip" or "grid".
        arrays: The arrays drawn, by role. A heatmap has `values` [row, column] or
            [panel, row, column], with the `low` and `high` of each cell where cells
            are means; an image grid `values` [image, row, column] or [image, row,
            column, channel]; a token strip `values` [token]; a histogram `edges`
            [bin + 1] and `heights` [series, bin]. Bars, lines and points have `x`
            and `y` [point], and `group` [point] (an index into `labels["groups"]`)
            where several series were drawn. A grid has those of its panels, such
            as `1/values` of the second.
        labels: Texts by role: `title`, `x`, `y`, and lists such as `groups`, or the
            `tokens` of a strip. A grid has `panels`: of each its kind, labels,
            ticks, scale and caption.
        ticks: Tick labels by axis, "x" and "y", one per cell or category.
        scale: Numbers and names that fix the drawing: `vmin`, `vmax`, `center`,
            `cmap`, `square`; and the `theme` that it was drawn in.
        caption: One line that says what is shown.
    """

    kind: str
    arrays: Mapping[str, np.ndarray]
    labels: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    ticks: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    scale: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    caption: str = ""

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise BadInput(f"A View of kind {self.kind!r}; known: {', '.join(_KINDS)}.")


def view_of(figure: object) -> View | None:
    """Return what a plotting helper drew on a figure, if one drew it.

    Args:
        figure: A figure; the helpers leave the View in its `theseus_view`.
    """
    view = getattr(figure, "theseus_view", None)
    return view if isinstance(view, View) else None
