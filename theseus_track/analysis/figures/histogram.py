"""The `histogram` helper: how numbers are distributed, as a View."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from theseus_track.analysis.figures.arrays import (
    bounded,
    dtype_of,
    is_table,
    json_options,
    numbers,
)
from theseus_track.analysis.figures.canvas import look_for
from theseus_track.analysis.figures.colour import group_colors
from theseus_track.analysis.figures.columns import finite_notes
from theseus_track.analysis.figures.drawing import paint
from theseus_track.analysis.figures.multiples import in_panels
from theseus_track.analysis.figures.refusal import refuse_unknown
from theseus_track.errors import BadInput
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["histogram"]

_STATS = ("count", "density", "probability")
_OPTIONS = ("alpha", "linewidth", "zorder")
_BINS = (8, 64)
_MAX_BINS = 2000


@in_panels
def histogram(
    data: Any,
    *,
    bins: Any = "auto",
    binrange: tuple[float, float] | None = None,
    stat: str = "count",
    log: bool = False,
    color: Any = None,
    palette: Any = None,
    legend: bool = True,
    ax: "Axes | None" = None,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    theme: str | None = None,
    **kwargs: Any,
) -> "Figure":
    """Draw how numbers are distributed.

    Args:
        data: Numbers of any shape, all of one distribution; or a dict or data frame
            with one distribution for each key, drawn over one another.
        bins: How many, or their edges in ascending order, or "auto": one for each
            integer where there are few, else by the rule of Freedman and Diaconis,
            between 8 and 64.
        binrange: The lowest and the highest value that is counted; what is beyond is
            left out, and the figure says how much.
        stat: "count", "density" (the area is 1) or "probability" (the sum is 1).
        log: Whether the heights are on a log scale.
        color: The colour of a single distribution.
        palette: A name, a list, or a dict from key to colour.
        legend: Whether several distributions are explained.
        ax: Axes to draw into, or None for a new figure.
        title: Above the axes.
        xlabel: Below the axes; the name of a series by default.
        ylabel: Beside the axes; `stat` by default.
        theme: "light", "dark", "serif" or "serif-dark"; by default that of the figure
            of `ax`, else "light".
        **kwargs: `alpha`, `linewidth`, `zorder`.

    Returns:
        A new figure, or the figure of `ax`; it carries its View.

    Raises:
        BadInput: When the data cannot be drawn, or a parameter has another value.

    Example:
        >>> from theseus_track.analysis.figures import histogram, view_of
        >>> view_of(histogram([0, 1, 1, 2])).arrays["heights"].tolist()
        [[1.0, 2.0, 1.0]]
    """
    refuse_unknown("histogram", kwargs, _OPTIONS)
    if stat not in _STATS:
        raise BadInput(f"stat={stat!r} must be one of {', '.join(map(repr, _STATS))}.")
    look = look_for(theme, ax)
    series = _series(data)
    notes: list[str] = []
    whole = np.concatenate([*series.values(), np.zeros(0)])
    if finite_notes(whole):
        notes += finite_notes(whole)
    finite = {
        name: bounded(values[np.isfinite(values)], notes)
        for name, values in series.items()
    }
    every = np.concatenate([*finite.values(), np.zeros(0)])
    edges = _edges(every, bins, binrange)
    outside = int(((every < edges[0]) | (every > edges[-1])).sum())
    if outside:
        notes.append(f"{outside} of {every.size} beyond {edges[0]:g} to {edges[-1]:g}")
    heights = np.stack([_heights(values, edges, stat) for values in finite.values()])
    names = [name for name in series if name is not None]
    colors = _colors(names, color, palette, look)
    view = View(
        kind="histogram",
        arrays={"edges": edges, "heights": heights},
        labels={
            "title": title,
            "x": getattr(data, "name", None) if xlabel is None else xlabel,
            "y": stat.capitalize() if ylabel is None else ylabel,
            "groups": list(names),
            "legend": [
                {"label": name, "color": shade}
                for name, shade in zip(names, colors, strict=False)
                if legend
            ],
            "notes": list(dict.fromkeys(notes)),
        },
        scale={
            "colors": list(colors),
            "stat": stat,
            "log": bool(log),
            "theme": look.name,
            "options": json_options(kwargs, "histogram"),
        },
        caption=_caption(every, edges, dtype_of(data)),
    )
    return paint(view, look, ax=ax)


def _series(data: Any) -> dict[str | None, np.ndarray]:
    """Return name -> numbers; the name is None where there is one distribution."""
    if is_table(data):
        found: dict[str | None, np.ndarray] = {
            str(key): numbers(data[key], f"data[{key!r}]").ravel() for key in data
        }
        return found or {None: np.zeros(0)}
    return {None: numbers(data, "data").ravel()}


def _edges(
    values: np.ndarray, bins: Any, binrange: tuple[float, float] | None
) -> np.ndarray:
    if not isinstance(bins, str | int | np.integer):
        edges = numbers(bins, "bins").ravel()
        if len(edges) < 2 or not (np.diff(edges) > 0).all():
            raise BadInput(f"bins={bins!r:.60} must be two or more ascending edges.")
        return edges
    low, high = _ends(values) if binrange is None else map(float, binrange)
    if not low < high:
        raise BadInput(f"binrange=({low:g}, {high:g}) must be ascending.")
    if isinstance(bins, str):
        if bins != "auto":
            raise BadInput(f"bins={bins!r} must be 'auto', a number or edges.")
        own = _unit_edges(values, binrange)
        if own is not None:
            return own
        bins = _bin_count(values[(values >= low) & (values <= high)], low, high)
    if not 1 <= bins <= _MAX_BINS:
        raise BadInput(f"bins={bins!r} must be 1 to {_MAX_BINS}.")
    return np.linspace(low, high, int(bins) + 1)


def _ends(values: np.ndarray) -> tuple[float, float]:
    if not values.size:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    if high - low > 1e-12 * max(abs(low), abs(high)):
        return low, high
    half = 0.5 * max(abs(low), 1e-12) if low else 0.5
    return low - half, high + half


def _unit_edges(
    values: np.ndarray, binrange: tuple[float, float] | None
) -> np.ndarray | None:
    """Return edges around each integer, where the values are few integers."""
    if binrange is not None or not values.size or not (values == values.round()).all():
        return None
    low, high = values.min(), values.max()
    if high - low >= _BINS[1]:
        return None
    return np.arange(low - 0.5, high + 1.0)


def _bin_count(values: np.ndarray, low: float, high: float) -> int:
    """Return how many bins, bounded so that outliers cannot blow it up.

    The rule is that of D. Freedman and P. Diaconis, 1981, "On the histogram as a
    density estimator: L2 theory".
    """
    if values.size < 2:
        return _BINS[0]
    upper, lower = np.percentile(values, [75.0, 25.0])
    width = 2.0 * (upper - lower) / np.cbrt(values.size)
    count = (high - low) / width if width > 0 else _BINS[0]
    return int(min(max(math.ceil(min(count, _BINS[1])), _BINS[0]), _BINS[1]))


def _heights(values: np.ndarray, edges: np.ndarray, stat: str) -> np.ndarray:
    counts = np.histogram(values, edges)[0].astype(np.float64)
    total = counts.sum() or 1.0
    if stat == "density":
        return counts / total / np.diff(edges)
    return counts / total if stat == "probability" else counts


def _colors(names: Sequence[str], color: Any, palette: Any, look: Any) -> list[str]:
    from matplotlib.colors import to_hex

    if not names:
        if palette is not None:
            raise BadInput("palette= needs several distributions; pass color= instead.")
        return [look.palette[0] if color is None else to_hex(color)]
    if color is not None:
        raise BadInput("color= is for one distribution; pass palette= for several.")
    return group_colors(names, look, palette=palette, numeric=False, hue_norm=None)


def _caption(values: np.ndarray, edges: np.ndarray, dtype: str) -> str:
    bins = f"{values.size} {f'{dtype} values'.strip()} in {len(edges) - 1} bins"
    if not values.size:
        return bins
    # Divided first: squares and sums of the largest floats overflow.
    unit = float(np.abs(values).max()) or 1.0
    mean, spread = unit * (values / unit).mean(), unit * (values / unit).std()
    return (
        f"{bins}, {values.min():.4g} to {values.max():.4g}, "
        f"mean {mean:.4g}, std {spread:.4g}"
    )
