"""The `scatter` helper: seaborn's `scatterplot` as a function of data to a View."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from theseus_track.analysis.figures.arrays import bounded, extent_of, json_options
from theseus_track.analysis.figures.canvas import look_for
from theseus_track.analysis.figures.columns import (
    coordinates,
    finite_notes,
    optional_levels,
    read_long,
)
from theseus_track.analysis.figures.drawing import paint
from theseus_track.analysis.figures.multiples import in_panels
from theseus_track.analysis.figures.refusal import refuse_unknown
from theseus_track.analysis.figures.semantics import (
    hue_of,
    legend_entries,
    markers_for,
    sizes_for,
)
from theseus_track.errors import BadInput
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["scatter"]

_AREA = 30.0
_POINT_OPTIONS = ("alpha", "color", "edgecolor", "linewidth", "marker", "s", "zorder")


@in_panels
def scatter(  # noqa: D417 (the other parameters are seaborn's)
    data: Any = None,
    *,
    x: Any = None,
    y: Any = None,
    hue: Any = None,
    size: Any = None,
    style: Any = None,
    palette: Any = None,
    hue_order: Sequence[Any] | None = None,
    hue_norm: Any = None,
    sizes: Any = None,
    size_order: Sequence[Any] | None = None,
    size_norm: Any = None,
    markers: Any = True,
    style_order: Sequence[Any] | None = None,
    legend: Any = "auto",
    ax: "Axes | None" = None,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    theme: str | None = None,
    **kwargs: Any,
) -> "Figure":
    """Draw y against x as points; as `seaborn.scatterplot`.

    Args:
        data: A dict or data frame that x, y and the groups name columns of; or alone:
            a sequence, or a dict, data frame or 2-D array with one group per column.
        title: Above the axes.
        xlabel: Below the axes; the name of x by default.
        ylabel: Beside the axes; the name of y by default.
        theme: "light", "dark", "serif" or "serif-dark"; by default that of the figure
            of `ax`, else "light".
        **kwargs: `alpha`, `color`, `edgecolor`, `linewidth`, `marker`, `s` (the area
            in points squared), `zorder`.

    Returns:
        A new figure, or the figure of `ax`; it carries its View.

    Raises:
        BadInput: When the data cannot be drawn, or a parameter cannot be honoured.

    Example:
        >>> from theseus_track.analysis.figures import scatter, view_of
        >>> view_of(scatter(x=[1, 2], y=[3, 4])).arrays["x"].tolist()
        [1.0, 2.0]
    """
    refuse_unknown("scatter", kwargs, _POINT_OPTIONS)
    given = {"x": x, "y": y, "hue": hue, "size": size, "style": style}
    look = look_for(theme, ax)
    columns, wide = read_long(data, given)
    if wide and "hue" in columns:
        columns["style"] = columns["hue"]
    missing = [role for role in ("x", "y") if role not in columns]
    if missing:
        raise BadInput(f"scatter needs {missing[0]}= as well. Pass it.")
    hues, colors = hue_of(
        columns.get("hue"), look, order=hue_order, palette=palette, norm=hue_norm
    )
    area = float(kwargs.get("s", _AREA))
    areas_of = optional_levels(columns, "size", size_order)
    areas = sizes_for(areas_of, sizes, size_norm, (0.5 * area, 2.0 * area))
    styles = optional_levels(columns, "style", style_order)
    marker_list = markers_for(styles, markers)
    places = {role: coordinates(columns[role], role) for role in ("x", "y")}
    notes = finite_notes(places["x"][0]) + finite_notes(places["y"][0])
    drawn = {role: bounded(where, notes) for role, (where, _) in places.items()}
    kept = np.isfinite(places["x"][0]) & np.isfinite(places["y"][0])
    for levels in (hues, areas_of, styles):
        kept &= (levels.index >= 0) if levels.values else True
    arrays = {role: drawn[role][kept] for role in ("x", "y")}
    for name, levels in (("group", hues), ("size", areas_of), ("style", styles)):
        if levels.values:
            arrays[name] = levels.index[kept]
    labels: dict[str, Any] = {
        "title": title,
        "x": columns["x"].name if xlabel is None else xlabel,
        "y": columns["y"].name if ylabel is None else ylabel,
        "groups": hues.texts,
        "legend": legend_entries(
            [
                (hues, "color", colors),
                (areas_of, "area", areas),
                (styles, "marker", marker_list),
            ],
            legend,
        ),
        "notes": [*dict.fromkeys(notes)],
    }
    scale: dict[str, Any] = {
        "colors": colors,
        "areas": areas,
        "area": area,
        "markers": marker_list,
        "theme": look.name,
        "options": json_options(
            {k: v for k, v in kwargs.items() if k != "s"}, "scatter"
        ),
    }
    view = View(
        kind="scatter",
        arrays=arrays,
        labels=labels,
        ticks={role: names for role, (_, names) in places.items() if names},
        scale=scale,
        caption=f"{int(kept.sum())} of {kept.size} points, "
        f"x {extent_of(places['x'][0], columns['x'].values)}; "
        f"y {extent_of(places['y'][0], columns['y'].values)}",
    )
    return paint(view, look, ax=ax)
