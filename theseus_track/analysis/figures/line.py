"""The `line` helper: seaborn's `lineplot` as a function of data to a View."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from theseus_track.analysis.figures.arrays import bounded, extent_of, json_options
from theseus_track.analysis.figures.canvas import look_for
from theseus_track.analysis.figures.columns import (
    Column,
    Levels,
    coordinates,
    finite_notes,
    optional_levels,
    read_long,
)
from theseus_track.analysis.figures.drawing import paint
from theseus_track.analysis.figures.multiples import in_panels
from theseus_track.analysis.figures.refusal import (
    refuse,
    refuse_deprecated,
    refuse_unknown,
)
from theseus_track.analysis.figures.semantics import (
    dashes_for,
    hue_of,
    legend_entries,
    markers_for,
    sizes_for,
)
from theseus_track.analysis.figures.statistics import describe, summarise
from theseus_track.errors import BadInput
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["line"]

_LINE_OPTIONS = (
    "alpha",
    "color",
    "linestyle",
    "linewidth",
    "marker",
    "markersize",
    "zorder",
)


@in_panels
def line(  # noqa: D417 (the other parameters are seaborn's)
    data: Any = None,
    *,
    x: Any = None,
    y: Any = None,
    hue: Any = None,
    size: Any = None,
    style: Any = None,
    units: Any = None,
    weights: Any = None,
    palette: Any = None,
    hue_order: Sequence[Any] | None = None,
    hue_norm: Any = None,
    sizes: Any = None,
    size_order: Sequence[Any] | None = None,
    size_norm: Any = None,
    dashes: Any = True,
    markers: Any = None,
    style_order: Sequence[Any] | None = None,
    estimator: Any = "mean",
    errorbar: Any = ("ci", 95),
    n_boot: int = 1000,
    seed: Any = None,
    orient: str = "x",
    sort: bool = True,
    err_style: str = "band",
    err_kws: Mapping[str, Any] | None = None,
    legend: Any = "auto",
    ci: Any = "deprecated",
    ax: "Axes | None" = None,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    theme: str | None = None,
    **kwargs: Any,
) -> "Figure":
    """Draw y over x as lines; as `seaborn.lineplot`.

    Points of one line at the same x are averaged, which the caption says;
    `estimator=None` draws them as they are. A NaN leaves a gap and is counted.

    Args:
        data: A dict or data frame that x, y and the groups name columns of; or alone:
            a sequence, or a dict, data frame or 2-D array with one line per column.
        title: Above the axes.
        xlabel: Below the axes; the name of x by default.
        ylabel: Beside the axes; the name of y by default.
        theme: "light", "dark", "serif" or "serif-dark"; by default that of the figure
            of `ax`, else "light".
        **kwargs: `alpha`, `color`, `linestyle`, `linewidth`, `marker`, `markersize`,
            `zorder`.

    Returns:
        A new figure, or the figure of `ax`; it carries its View.

    Raises:
        BadInput: When the data cannot be drawn, or a parameter cannot be honoured:
            `weights`, `units` with an estimator, and the deprecated `ci`.

    Example:
        >>> from theseus_track.analysis.figures import line, view_of
        >>> view_of(line([3.0, 1.0, 2.0])).arrays["y"].tolist()
        [3.0, 1.0, 2.0]
    """
    refuse_deprecated("line", ci=ci)
    refuse("line", "weighted means, computed before", weights=weights)
    if estimator is not None:
        refuse("line", "estimator=None as well, for one line per unit", units=units)
    if orient not in ("x", "y") or err_style not in ("band", "bars"):
        raise BadInput(
            f"orient={orient!r} must be 'x' or 'y', and err_style={err_style!r} 'band' "
            "or 'bars'."
        )
    refuse_unknown("line", kwargs, _LINE_OPTIONS)
    given = {"x": x, "y": y, "hue": hue, "size": size, "style": style, "units": units}
    look = look_for(theme, ax)
    columns, wide = read_long(data, given)
    if wide and "hue" in columns:
        columns["style"] = columns["hue"]
    columns = _completed(columns)
    hues, colors = hue_of(
        columns.get("hue"), look, order=hue_order, palette=palette, norm=hue_norm
    )
    thick = float(kwargs.get("linewidth", look.line))
    widths_of = optional_levels(columns, "size", size_order)
    widths = sizes_for(widths_of, sizes, size_norm, (0.5 * thick, 2.0 * thick))
    styles = optional_levels(columns, "style", style_order)
    dash_list, marker_list = dashes_for(styles, dashes), markers_for(styles, markers)
    across = "y" if orient == "x" else "x"
    places = coordinates(columns[orient], orient)
    raw = columns[across].numbers(across)
    notes = finite_notes(raw)
    values = bounded(raw, notes)
    keys = [hues, widths_of, styles, optional_levels(columns, "units", None)]
    lines, members = _members(keys, len(values))
    how = {"estimator": estimator, "errorbar": errorbar, "n_boot": n_boot, "seed": seed}
    arrays = _series(places[0], values, members, len(lines), sort=sort, how=how)
    if orient == "y":
        arrays["x"], arrays["y"] = arrays["y"], arrays["x"]
    averaged = len(arrays["y"]) < len(values)
    labels: dict[str, Any] = {
        "title": title,
        "x": columns["x"].name if xlabel is None else xlabel,
        "y": columns["y"].name if ylabel is None else ylabel,
        "groups": [_group_name(keys, key) for key in lines],
        "legend": legend_entries(
            [
                (hues, "color", colors),
                (widths_of, "width", widths),
                (styles, "dash", dash_list),
                (styles, "marker", marker_list),
            ],
            legend,
        ),
        "notes": [*notes],
    }
    scale: dict[str, Any] = {
        "orient": orient,
        "colors": [_pick(colors, key[0], None) for key in lines],
        "widths": [_pick(widths, key[1], None) for key in lines],
        "dashes": [_pick(dash_list, key[2], []) for key in lines],
        "markers": [_pick(marker_list, key[2], "") for key in lines],
        "error_style": err_style,
        "error_options": json_options(err_kws, "err_kws"),
        "theme": look.name,
        "options": json_options(kwargs, "line"),
    }
    extent = extent_of(values, columns[across].values)
    view = View(
        kind="line",
        arrays=arrays,
        labels=labels,
        ticks={orient: places[1]},
        scale=scale,
        caption=f"{describe(estimator, errorbar)} of {extent}" if averaged else extent,
    )
    return paint(view, look, ax=ax)


def _completed(columns: dict[str, Column]) -> dict[str, Column]:
    """Add the index where x or y is missing."""
    missing = [role for role in ("x", "y") if role not in columns]
    if missing:
        count = len(next(iter(columns.values())).values)
        columns[missing[0]] = Column(values=np.arange(count))
    return columns


def _members(
    keys: Sequence[Levels], count: int
) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Return the lines as tuples of levels, and the line of each point (-1: none)."""
    table = np.stack([k.index if k.values else np.zeros(count, np.int64) for k in keys])
    whole = np.asarray((table >= 0).all(axis=0))
    lines = sorted({tuple(map(int, point)) for point in table[:, whole].T})
    number = {key: index for index, key in enumerate(lines)}
    members = [
        number[tuple(map(int, point))] if ok else -1
        for point, ok in zip(table.T, whole.tolist(), strict=True)
    ]
    return lines, np.array(members, np.int64)


def _series(
    places: np.ndarray,
    values: np.ndarray,
    members: np.ndarray,
    count: int,
    *,
    sort: bool,
    how: dict[str, Any],
) -> dict[str, np.ndarray]:
    rows: list[np.ndarray] = []
    for index in range(count):
        own = (members == index) & np.isfinite(places)
        where, what = places[own], values[own]
        nothing = np.full(len(where), np.nan)
        points = np.stack([where, what, nothing, nothing])
        if sort:
            points = points[:, np.argsort(where, kind="stable")]
        if how["estimator"] is not None and len(np.unique(where)) < len(where):
            points = _averaged(where, what, how)
        rows.append(np.vstack([points, np.full(points.shape[1], index)]))
    table = np.concatenate(rows, axis=1) if rows else np.zeros((5, 0))
    names = ("x", "y", "low", "high")
    arrays = dict(zip(names, table, strict=False))
    return {**arrays, "group": table[4].astype(np.int64)}


def _averaged(where: np.ndarray, what: np.ndarray, how: dict[str, Any]) -> np.ndarray:
    distinct = np.unique(where)
    summaries = np.array([summarise(what[where == place], **how) for place in distinct])
    return np.vstack([distinct, summaries.T])


def _group_name(keys: Sequence[Levels], key: tuple[int, ...]) -> str:
    texts = [k.texts[i] for k, i in zip(keys, key, strict=True) if k.values]
    return ", ".join(dict.fromkeys(texts))


def _pick(values: Sequence[Any], index: int, default: Any) -> Any:
    return values[index] if values else default
