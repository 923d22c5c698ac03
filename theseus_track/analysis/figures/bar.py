"""The `bar` helper: seaborn's `barplot` as a function of data to a View."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from theseus_track.analysis.figures.arrays import bounded, extent_of, json_options
from theseus_track.analysis.figures.canvas import look_for
from theseus_track.analysis.figures.colour import desaturated
from theseus_track.analysis.figures.columns import (
    Column,
    Levels,
    finite_notes,
    levels_of,
    read_long,
)
from theseus_track.analysis.figures.drawing import paint
from theseus_track.analysis.figures.multiples import in_panels
from theseus_track.analysis.figures.refusal import (
    DEPRECATED,
    refuse,
    refuse_deprecated,
    refuse_unknown,
)
from theseus_track.analysis.figures.semantics import hue_of, legend_entries
from theseus_track.analysis.figures.statistics import describe, summarise
from theseus_track.analysis.figures.theme import Theme
from theseus_track.errors import BadInput
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["bar"]

_PATCH_OPTIONS = ("alpha", "edgecolor", "hatch", "linestyle", "linewidth", "zorder")


@in_panels
def bar(  # noqa: D417 (the other parameters are seaborn's)
    data: Any = None,
    *,
    x: Any = None,
    y: Any = None,
    hue: Any = None,
    order: Sequence[Any] | None = None,
    hue_order: Sequence[Any] | None = None,
    estimator: Any = "mean",
    errorbar: Any = ("ci", 95),
    n_boot: int = 1000,
    seed: Any = None,
    units: Any = None,
    weights: Any = None,
    orient: str | None = None,
    color: Any = None,
    palette: Any = None,
    saturation: float = 0.75,
    fill: bool = True,
    hue_norm: Any = None,
    width: float = 0.8,
    dodge: Any = "auto",
    gap: float = 0,
    log_scale: Any = None,
    native_scale: bool = False,
    formatter: Callable[[Any], str] | None = None,
    legend: Any = "auto",
    capsize: float = 0,
    err_kws: Mapping[str, Any] | None = None,
    ci: Any = DEPRECATED,
    errcolor: Any = DEPRECATED,
    errwidth: Any = DEPRECATED,
    ax: "Axes | None" = None,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    theme: str | None = None,
    **kwargs: Any,
) -> "Figure":
    """Draw an estimate per category as bars; as `seaborn.barplot`.

    Args:
        data: A dict or data frame that x, y and hue name columns of; or alone: a
            sequence, or a dict, data frame or 2-D array with one bar per column.
        title: Above the axes.
        xlabel: Below the axes; the name of x by default.
        ylabel: Beside the axes; the name of y by default.
        theme: "light", "dark", "serif" or "serif-dark"; by default that of the figure
            of `ax`, else "light".
        **kwargs: `alpha`, `edgecolor`, `hatch`, `linestyle`, `linewidth`, `zorder`.

    Returns:
        A new figure, or the figure of `ax`; it carries its View.

    Raises:
        BadInput: When the data cannot be drawn, or a parameter cannot be honoured:
            `units`, `weights`, and the deprecated `ci`, `errcolor`, `errwidth`.

    Example:
        >>> from theseus_track.analysis.figures import bar, view_of
        >>> view_of(bar(x=["a", "b"], y=[1.0, 2.0])).arrays["y"].tolist()
        [1.0, 2.0]
    """
    refuse_deprecated("bar", ci=ci, errcolor=errcolor, errwidth=errwidth)
    refuse(
        "bar", "the mean of each unit, computed before", units=units, weights=weights
    )
    look = look_for(theme, ax)
    columns, wide = read_long(data, {"x": x, "y": y, "hue": hue})
    if wide and "hue" in columns:
        columns = {"x": columns["hue"], "y": columns["y"]}
    along, columns = _orientation(columns, orient)
    raw = columns["y"].numbers("y" if along == "x" else "x")
    notes = finite_notes(raw)
    values = bounded(raw, notes)
    places = levels_of(columns["x"], order, "order")
    if palette is not None and "hue" not in columns:
        # Seaborn colours the categories themselves then.
        columns["hue"] = columns["x"]
        hue_order = places.values
    groups, colors = hue_of(
        columns.get("hue"), look, order=hue_order, palette=palette, norm=hue_norm
    )
    same = bool(groups.values) and groups.values == places.values
    arrays = _summaries(
        values,
        places,
        groups,
        estimator=estimator,
        errorbar=errorbar,
        n_boot=n_boot,
        seed=seed,
    )
    if native_scale and not places.numeric:
        raise BadInput(
            "native_scale=True needs numbers as categories; these are texts."
        )
    names = [columns["x"].name, columns["y"].name][:: 1 if along == "x" else -1]
    shades = [desaturated(shade, saturation) for shade in colors]
    labels: dict[str, Any] = {
        "title": title,
        "x": names[0] if xlabel is None else xlabel,
        "y": names[1] if ylabel is None else ylabel,
        "groups": groups.texts,
        "legend": [] if same else legend_entries([(groups, "color", shades)], legend),
        "notes": [*notes],
    }
    scale: dict[str, Any] = {
        "orient": along,
        "colors": colors or [_one_color(color, look)],
        "saturation": float(saturation),
        "fill": bool(fill),
        "width": float(width),
        "gap": float(gap),
        "dodge": _dodged(dodge, places, groups),
        "positions": places.values if native_scale else None,
        "log": _log_bases(log_scale, along),
        "capsize": float(capsize),
        "error_options": json_options(err_kws, "err_kws"),
        "theme": look.name,
        "options": _options(kwargs),
    }
    extent = extent_of(values, columns["y"].values)
    view = View(
        kind="bar",
        arrays=arrays,
        labels=labels,
        ticks={along: _names(places, formatter)},
        scale=scale,
        caption=f"{describe(estimator, errorbar)} of {extent}"
        if len(arrays["y"]) < values.size
        else extent,
    )
    return paint(view, look, ax=ax)


def _orientation(
    columns: dict[str, Column], orient: str | None
) -> tuple[str, dict[str, Column]]:
    """Return the axis of the categories, and the columns with the categories as x."""
    known = {None: None, "x": "x", "v": "x", "y": "y", "h": "y"}
    if orient not in known:
        raise BadInput(f"orient={orient!r} must be 'x' or 'v', 'y' or 'h', or None.")
    along = known[orient]
    if along is None:
        x, y = columns.get("x"), columns.get("y")
        sideways = y is None or (x is not None and x.numeric and not y.numeric)
        along = "y" if sideways else "x"
    places, values = ("x", "y") if along == "x" else ("y", "x")
    if values not in columns:
        raise BadInput(
            f"Bars along {places} need {values}= for their lengths. Pass it."
        )
    count = len(columns[values].values)
    one = Column(values=np.full(count, "", object))
    rest = {role: column for role, column in columns.items() if role == "hue"}
    return along, {"x": columns.get(places, one), "y": columns[values], **rest}


def _summaries(
    values: np.ndarray, places: Levels, groups: Levels, **how: Any
) -> dict[str, np.ndarray]:
    """Return one bar per place and group that has a point."""
    members = groups.index if groups.values else np.zeros(len(values), np.int64)
    rows = []
    for place in range(len(places.values)):
        for group in range(max(1, len(groups.values))):
            points = values[(places.index == place) & (members == group)]
            if points.size:
                rows.append((place, group, *summarise(points, **how)))
    table = np.array(rows, np.float64).reshape(-1, 5)
    return {
        "x": table[:, 0].astype(np.int64),
        "group": table[:, 1].astype(np.int64),
        "y": table[:, 2],
        "low": table[:, 3],
        "high": table[:, 4],
    }


def _names(places: Levels, formatter: Callable[[Any], str] | None) -> list[str]:
    if formatter is None:
        return places.texts
    return [str(formatter(value)) for value in places.values]


def _dodged(dodge: Any, places: Levels, groups: Levels) -> bool:
    if dodge not in ("auto", True, False):
        raise BadInput(f"dodge={dodge!r} must be 'auto', True or False.")
    if dodge != "auto":
        return bool(dodge)
    if not groups.values:
        return False
    # Where each place has one group, dodging would only push the bars aside.
    known = (places.index >= 0) & (groups.index >= 0)
    pairs = set(zip(places.index[known], groups.index[known], strict=True))
    return len(pairs) > len({place for place, _ in pairs})


def _log_bases(log_scale: Any, along: str) -> list[float]:
    """Return the bases of the x and y axes; 0 for a linear one."""
    if isinstance(log_scale, tuple | list):
        if len(log_scale) != 2:
            raise BadInput(
                f"log_scale={log_scale!r} must be one value or one per axis."
            )
        return [_base(value) for value in log_scale]
    base = _base(log_scale)
    return [0.0, base] if along == "x" else [base, 0.0]


def _base(value: Any) -> float:
    if value is None or value is False:
        return 0.0
    return 10.0 if value is True else float(value)


def _one_color(color: Any, look: Theme) -> str:
    from matplotlib.colors import to_hex

    return look.palette[0] if color is None else to_hex(color)


def _options(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    refuse_unknown("bar", kwargs, _PATCH_OPTIONS)
    return json_options(kwargs, "bar")
