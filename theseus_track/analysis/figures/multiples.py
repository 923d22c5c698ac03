"""Draw one helper's figure for each of several data, side by side on one scale."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np

from theseus_track.analysis.figures.canvas import look_for
from theseus_track.analysis.figures.colour import color_scale
from theseus_track.analysis.figures.drawing import paint
from theseus_track.analysis.figures.theme import Theme
from theseus_track.analysis.figures.views import join_views
from theseus_track.errors import BadInput
from theseus_track.records import View
from theseus_track.records.view import view_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["in_panels", "multiples"]

P = ParamSpec("P")

_MAX_PANELS = 36
_STACK_DIMS = 3
_COLORED = ("heatmap", "token_strip", "image_grid")


def in_panels(helper: "Callable[P, Figure]") -> "Callable[P, Figure]":
    """Let a helper draw a three-dimensional array [panel, ...] as small multiples."""

    @functools.wraps(helper)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> "Figure":
        data: Any = args[0] if args else kwargs.get("data")
        if not _is_stack(data):
            return helper(*args, **kwargs)
        if kwargs.get("ax") is not None:
            raise BadInput(
                f"data of shape {np.shape(data)} gives small multiples, which need a "
                "figure of their own. Leave ax out, or draw data[i]."
            )
        rest: dict[str, Any] = {
            key: value for key, value in kwargs.items() if key != "data"
        }
        names = [str(index) for index in range(len(data))]
        panels = dict(zip(names, data, strict=True))
        return multiples(helper, panels, **rest)

    return wrapper


def multiples(
    helper: "Callable[..., Figure]",
    panels: Mapping[str, Any],
    *,
    cols: int | None = None,
    share: bool = True,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    theme: str | None = None,
    **options: Any,
) -> "Figure":
    """Draw one panel for each datum; see `grid`."""
    notes: list[str] = []
    panels = _some(panels, notes)
    if share and helper.__name__ == "histogram":
        options = {**options, **_shared_bins(helper, panels, options)}

    def views(**more: Any) -> list[View]:
        return [
            _view(helper, data, {**options, **more, "title": name, "theme": theme})
            for name, data in panels.items()
        ]

    drawn = views()
    if share:
        levels = _shared_levels(drawn, options)
        if levels:
            drawn = views(hue_order=levels)
        drawn = _shared_colors(drawn, options, look_for(theme, None))
    labels = {
        "title": title,
        "x": _common(drawn, "x") if xlabel is None else xlabel,
        "y": _common(drawn, "y") if ylabel is None else ylabel,
        "notes": [*notes, *_notes_of(drawn)],
        "counts": _counts_of(drawn),
    }
    look = look_for(theme, None)
    whole = join_views(
        drawn,
        labels=labels,
        scale={
            "cols": cols,
            "share": bool(share),
            "theme": look.name,
            "colorbar": bool(options.get("cbar", True)),
            "of": sum(_size(view) for view in drawn),
        },
        caption=f"{len(drawn)} panels; the first: {drawn[0].caption}",
    )
    return paint(whole, look)


def _is_stack(data: Any) -> bool:
    if isinstance(data, list):
        # A ragged list is no stack; the helper says what is wrong with it.
        depth, item = 0, data
        while isinstance(item, list) and item:
            depth, item = depth + 1, item[0]
        return depth + getattr(item, "ndim", 0) == _STACK_DIMS
    return getattr(data, "ndim", None) == _STACK_DIMS and len(data) > 0


def _some(panels: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    names = list(panels)
    if not names:
        raise BadInput("There is nothing to draw: panels is empty. Pass one or more.")
    if len(names) > _MAX_PANELS:
        chosen = np.linspace(0, len(names) - 1, _MAX_PANELS).round().astype(int)
        notes.append(f"{_MAX_PANELS} of {len(names)} panels")
        names = [names[index] for index in chosen]
    return {name: panels[name] for name in names}


def _view(
    helper: "Callable[..., Figure]", data: Any, options: Mapping[str, Any]
) -> View:
    view = view_of(helper(data, **options))
    if view is None or view.kind == "grid":
        raise BadInput(
            f"The panel {options['title']!r} has data of shape {np.shape(data)}, which "
            "is more than one panel. Pass data of fewer dimensions."
        )
    return view


def _shared_levels(views: Sequence[View], options: Mapping[str, Any]) -> list[str]:
    """Return the groups of all panels in order, where the panels' own ones differ."""
    lists = [view.labels.get("groups") for view in views]
    groups = [tuple(map(str, g)) if isinstance(g, list) else () for g in lists]
    takes = views[0].kind in ("line", "scatter", "bar") and "style" not in options
    if not takes or len(set(groups)) == 1 or "hue_order" in options:
        return []
    every = list(dict.fromkeys(name for group in groups for name in group))
    return [] if all(map(_is_number, every)) else every


def _shared_bins(
    helper: "Callable[..., Figure]",
    panels: Mapping[str, Any],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the edges that one histogram of all panels would have."""
    every = [
        np.ravel(np.asarray(part, np.float64))
        for data in panels.values()
        for part in (data.values() if isinstance(data, Mapping) else [data])
    ]
    kept = {k: v for k, v in options.items() if k in ("bins", "binrange")}
    view = view_of(helper(np.concatenate(every), **kept))
    return {"bins": view.arrays["edges"], "binrange": None} if view else {}


def _shared_colors(
    views: list[View], options: Mapping[str, Any], look: Theme
) -> list[View]:
    if views[0].kind not in _COLORED or views[0].scale.get("colored"):
        return views
    parts = []
    for view in views:
        values = view.arrays["values"]
        mask = view.arrays.get("mask")
        parts.append((values if mask is None else values[~mask]).ravel())
    names = ("vmin", "vmax", "center", "cmap", "norm")
    given = {name: options.get(name) for name in names}
    scale = color_scale(
        np.concatenate(parts), look, robust=bool(options.get("robust")), **given
    )
    if views[0].kind == "image_grid" and not given["cmap"] and scale["center"] is None:
        scale["cmap"] = "gray"
    return [dataclasses.replace(view, scale={**view.scale, **scale}) for view in views]


def _common(views: Sequence[View], role: str) -> str | None:
    labels = {str(view.labels.get(role) or "") for view in views}
    return (labels.pop() or None) if len(labels) == 1 else None


def _notes_of(views: Sequence[View]) -> list[str]:
    """Return the notes of all panels, with a panel's name where they differ."""
    told: dict[str, list[str]] = {}
    for view in views:
        notes = view.labels.get("notes")
        for note in notes if isinstance(notes, list) else ():
            told.setdefault(str(note), []).append(str(view.labels.get("title")))
    return [
        note if len(names) == len(views) else f"{', '.join(names)}: {note}"
        for note, names in told.items()
    ]


def _counts_of(views: Sequence[View]) -> dict[str, int]:
    total: dict[str, int] = {}
    for view in views:
        counts: Any = view.labels.get("counts") or {}
        for kind, count in counts.items():
            total[kind] = total.get(kind, 0) + int(count)
    return total


def _size(view: View) -> int:
    size = view.scale.get("of")
    return size if isinstance(size, int) else 0


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
