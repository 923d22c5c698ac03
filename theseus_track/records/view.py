"""A View: what a plotting helper drew, as data, so that it can be drawn again."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from theseus_track.errors import BadInput
from theseus_track.records.strict_json import Json

__all__ = ["View", "view_of"]

_KINDS = ("heatmap", "bar", "line", "scatter")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a plotting helper drew, as data.

    Attributes:
        kind: "heatmap", "bar", "line" or "scatter".
        arrays: The arrays drawn, by role. A heatmap has `values` [row, column];
            the others have `x` and `y` [point], and `group` [point] (an index
            into `labels["groups"]`) where several series were drawn.
        labels: Texts by role: `title`, `x`, `y`, and lists such as `groups`.
        ticks: Tick labels by axis, "x" and "y", one per cell or category.
        scale: Numbers and names that fix the drawing: `vmin`, `vmax`, `center`,
            `cmap`, `square`.
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
