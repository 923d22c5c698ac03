"""Draw the View of points."""

from typing import TYPE_CHECKING, Any

import numpy as np

from theseus_track.analysis.figures.frame import (
    finish,
    label_places,
    place,
    say_nothing,
)
from theseus_track.analysis.figures.theme import Theme
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_scatter"]

_SIZE = (3.4, 2.9)
_MANY_POINTS = 5_000
"""More points than this become pixels inside the PDF."""


def draw_scatter(view: View, theme: Theme, *, ax: "Axes | None" = None) -> "Figure":
    """Draw a View of kind "scatter" into a new figure, or into `ax`."""
    scale: Any = view.scale
    made, ax, size = place(view, theme, ax, _SIZE, "both")
    arrays = view.arrays
    count = len(arrays["x"])
    styles = arrays.get("style", np.zeros(count, np.int64))
    markers = scale["markers"] or ["o"]
    for index, marker in enumerate(markers):
        own = styles == index
        style = {
            "c": _colors(view, theme)[own].tolist(),
            "s": _areas(view)[own],
            "marker": marker or "o",
            "linewidths": 0.4,
            "edgecolors": theme.paper,
            "rasterized": count > _MANY_POINTS,
        }
        renamed = {"edgecolor": "edgecolors", "linewidth": "linewidths"}
        options = {renamed.get(k, k): v for k, v in scale["options"].items()}
        if options.pop("color", None) is not None:
            style["c"] = scale["options"]["color"]
        ax.scatter(arrays["x"][own], arrays["y"][own], **{**style, **options})
    if not count:
        say_nothing(ax, theme)
    notes = []
    for axis in ("x", "y"):
        names = list(view.ticks.get(axis, ()))
        notes += label_places(ax, axis, names, list(range(len(names))), size, theme)
    return finish(made, ax, view, theme, size=size, notes=notes)


def _colors(view: View, theme: Theme) -> np.ndarray:
    colors: Any = view.scale["colors"]
    if not colors:
        return np.full(len(view.arrays["x"]), theme.palette[0], object)
    chosen: np.ndarray = np.array(colors, object)[view.arrays["group"]]
    return chosen


def _areas(view: View) -> np.ndarray:
    scale: Any = view.scale
    if not scale["areas"]:
        return np.full(len(view.arrays["x"]), scale["area"])
    areas: np.ndarray = np.asarray(scale["areas"], np.float64)[view.arrays["size"]]
    return areas
