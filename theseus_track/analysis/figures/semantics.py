"""Map groups to colours, sizes, dashes and markers, and explain them in a legend."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from theseus_track.analysis.figures.colour import group_colors
from theseus_track.analysis.figures.columns import (
    NO_LEVELS,
    Column,
    Levels,
    levels_of,
)
from theseus_track.analysis.figures.theme import Theme
from theseus_track.errors import BadInput

__all__ = [
    "dashes_for",
    "hue_of",
    "legend_entries",
    "markers_for",
    "sizes_for",
]

_MARKERS = ("o", "X", "s", "P", "D", "^", "v", "p", "h", "8", "<", ">", "d", "H")
_DASHES = ((), (4, 1.5), (1, 1), (3, 1.25, 1.5, 1.25), (5, 1, 1, 1), (6, 2, 2, 2))
_BRIEF = 6
"""Numeric levels above this number are explained by a few of them."""


def hue_of(
    column: Column | None,
    theme: Theme,
    *,
    order: Sequence[Any] | None,
    palette: Any,
    norm: Any,
) -> tuple[Levels, list[str]]:
    """Return the levels of hue and a colour for each; none without hue."""
    if column is None:
        for name, value in (
            ("hue_order", order),
            ("hue_norm", norm),
            ("palette", palette),
        ):
            if value is not None:
                raise BadInput(f"{name}={value!r:.60} needs hue. Pass hue= or drop it.")
        return NO_LEVELS, []
    levels = levels_of(column, order, "hue")
    colors = group_colors(
        levels.values, theme, palette=palette, numeric=levels.numeric, hue_norm=norm
    )
    return levels, colors


def sizes_for(
    levels: Levels, sizes: Any, norm: Any, default: tuple[float, float]
) -> list[float]:
    """Return a size per level: a width in points or an area in points squared."""
    if isinstance(sizes, Mapping):
        missing = [level for level in levels.values if level not in sizes]
        if missing:
            raise BadInput(f"sizes has no size for {missing[0]!r}. Add it.")
        return [float(sizes[level]) for level in levels.values]
    if isinstance(sizes, list):
        if len(sizes) < len(levels.values):
            raise BadInput(
                f"sizes has {len(sizes)} entries for {len(levels.values)} levels."
            )
        return [float(size) for size in sizes[: len(levels.values)]]
    if sizes is not None and not (isinstance(sizes, tuple) and len(sizes) == 2):
        raise BadInput(
            f"sizes={sizes!r:.60} must be (smallest, largest), a list or a dict."
        )
    low, high = default if sizes is None else sizes
    count = len(levels.values)
    if not levels.numeric:
        if norm is not None:
            raise BadInput(
                "size_norm needs numbers as size; these are categories. Drop it."
            )
        # Seaborn gives the first category the largest size.
        return [float(size) for size in np.linspace(high, low, count)]
    values = np.asarray(levels.values, np.float64)
    ends = _size_ends(values, norm)
    place = np.clip((values - ends[0]) / ((ends[1] - ends[0]) or 1.0), 0.0, 1.0)
    return [float(size) for size in low + place * (high - low)]


def markers_for(levels: Levels, markers: Any) -> list[str]:
    """Return a matplotlib marker per style level; "" for none."""
    return _styles(levels, markers, [*_MARKERS], "", "markers")


def dashes_for(levels: Levels, dashes: Any) -> list[list[float]]:
    """Return on and off lengths per style level; [] for a solid line."""
    options = [list(map(float, dash)) for dash in _DASHES]
    chosen = _styles(levels, dashes, options, [], "dashes")
    return [[] if dash in ("", "-") else list(dash) for dash in chosen]


def legend_entries(
    parts: Sequence[tuple[Levels, str, Sequence[Any]]], legend: Any
) -> list[dict[str, Any]]:
    """Return the lines of a legend.

    Args:
        parts: (levels, property, a value per level) for each mapping that was used;
            the property is "color", "width", "area", "dash" or "marker".
        legend: "auto", "brief", "full", True or False, as in seaborn.

    Returns:
        Dicts with `label` and drawing properties; one with `label` alone heads a
        variable where there are several. Mappings of one variable are merged.
    """
    if legend not in ("auto", "brief", "full", True, False):
        raise BadInput(
            f"legend={legend!r} must be 'auto', 'brief', 'full', True or False."
        )
    if legend is False:
        return []
    merged: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    brief: set[tuple[Any, ...]] = set()
    for levels, what, values in parts:
        key = (levels.name, *levels.texts)
        rows = merged.setdefault(key, [{"label": text} for text in levels.texts])
        for row, value in zip(rows, values, strict=True):
            row[what] = value
        if levels.numeric and _is_brief(levels, legend):
            brief.add(key)
    entries: list[dict[str, Any]] = []
    for key, rows in merged.items():
        if rows and key[0] is not None:
            entries.append({"label": str(key[0])})
        entries += _few(rows) if key in brief else rows
    return entries


def _is_brief(levels: Levels, legend: Any) -> bool:
    return legend == "brief" or (
        legend in ("auto", True) and len(levels.values) > _BRIEF
    )


def _few(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    chosen = (
        np.linspace(0, len(rows) - 1, min(len(rows), _BRIEF - 1)).round().astype(int)
    )
    return [{**rows[i], "label": f"{float(rows[i]['label']):.3g}"} for i in chosen]


def _styles(
    levels: Levels, given: Any, defaults: list[Any], none: Any, what: str
) -> list[Any]:
    count = len(levels.values)
    if given is None or given is False:
        return [none] * count
    if isinstance(given, Mapping):
        missing = [level for level in levels.values if level not in given]
        if missing:
            raise BadInput(f"{what} has no entry for {missing[0]!r}. Add it.")
        return [given[level] for level in levels.values]
    if given is True:
        return [defaults[index % len(defaults)] for index in range(count)]
    if not isinstance(given, list | tuple) or len(given) < count:
        raise BadInput(
            f"{what}={given!r:.60} must be True, False, a dict, or a list of {count} "
            "entries, one for each style."
        )
    return list(given[:count])


def _size_ends(values: np.ndarray, norm: Any) -> tuple[float, float]:
    if norm is None:
        return (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if isinstance(norm, tuple) and len(norm) == 2:
        return float(norm[0]), float(norm[1])
    vmin, vmax = getattr(norm, "vmin", None), getattr(norm, "vmax", None)
    if vmin is None or vmax is None:
        raise BadInput(f"size_norm={norm!r:.60} must be a pair (lowest, highest).")
    return float(vmin), float(vmax)
