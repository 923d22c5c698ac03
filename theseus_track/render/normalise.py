"""Sort what `plot` returned into named figures and JSON values."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from theseus_track.errors import BadInput, RenderError
from theseus_track.records import to_json_value
from theseus_track.records.strict_json import Json
from theseus_track.render.tables import plain_value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Parts", "figure_of", "normalise"]

Parts: TypeAlias = "Mapping[str, Figure | Json]"

_MAX_BARE_ELEMENTS = 10_000
"""A bare array above this size is a forgotten plot, not a table."""

_MAX_NAME_LENGTH = 200

_ALLOWED = (
    "a result may be a matplotlib Figure, an Axes or a seaborn grid, a dict or other "
    "JSON value, a dict of part names to those, or None"
)


def normalise(result: object) -> Parts:
    """Sort what `plot` returned into named parts.

    Args:
        result: A Figure; an Axes, a seaborn grid or an artist (its figure is taken);
            a JSON value, which may hold data frames, series, dataclasses and dates; a
            mapping of part names to those, recognised by holding at least one
            figure; or None.

    Returns:
        Part name -> Figure or strict JSON value; the name is "" when there is one
        part, and the mapping is empty for None. A None inside a mapping of parts
        leaves that part out.

    Raises:
        RenderError: When the result is something else, such as a list of arrays.
    """
    if result is None:
        return {}
    figure = figure_of(result)
    if figure is not None:
        return {"": figure}
    if isinstance(result, Mapping) and any(map(_holds_figure, result.values())):
        return _named_parts(result)
    return {"": _json(result, "The result")}


def figure_of(value: object) -> "Figure | None":
    """Return the figure that a value is, or belongs to; None when there is none."""
    module = sys.modules.get("matplotlib.figure")
    if module is None:
        # Nobody imported matplotlib, so nobody can hold a figure.
        return None
    owner = value
    if not isinstance(owner, module.Figure):
        owner = getattr(value, "figure", None)
    if isinstance(owner, module.SubFigure):
        owner = owner.get_figure(root=True)
    return owner if isinstance(owner, module.Figure) else None


def _holds_figure(value: object) -> bool:
    if figure_of(value) is not None:
        return True
    return isinstance(value, Mapping) and any(map(_holds_figure, value.values()))


def _named_parts(result: Mapping[object, object]) -> Parts:
    parts: dict[str, Figure | Json] = {}
    for key, value in result.items():
        name = _part_name(key)
        if name in parts:
            raise RenderError(
                f"Two parts of the result have the name {name!r}. Rename one."
            )
        figure = figure_of(value)
        if figure is None and _holds_figure(value):
            raise RenderError(
                f"The part {name!r} of the result is a mapping that holds figures; "
                "parts are one level deep. Give each figure its own name."
            )
        if value is not None:
            parts[name] = (
                _json(value, f"The part {name!r}") if figure is None else figure
            )
    return parts


def _part_name(key: object) -> str:
    name = str(key)
    if 1 <= len(name) <= _MAX_NAME_LENGTH and name.isprintable():
        return name
    raise RenderError(
        f"A part of the result has the name {key!r:.80}; the name of a part is 1 to "
        f"{_MAX_NAME_LENGTH} printable characters. Rename that key."
    )


def _json(value: object, where: str) -> Json:
    if _is_plotting_leftover(value):
        raise RenderError(
            f"{where} is {_describe(value)}: {_ALLOWED}. Return the figure alone."
        )
    if isinstance(value, np.ndarray) and value.size > _MAX_BARE_ELEMENTS:
        raise RenderError(
            f"{where} is {_describe(value)}, more than {_MAX_BARE_ELEMENTS} "
            f"numbers: {_ALLOWED}. Draw it, such as by a heatmap."
        )
    if isinstance(value, list | tuple) and any(
        isinstance(item, np.ndarray) and item.ndim for item in value
    ):
        raise RenderError(
            f"{where} is {_describe(value)}: {_ALLOWED}. Draw the arrays, or "
            "return them in a dict of names."
        )
    try:
        return to_json_value(plain_value(value))
    except BadInput as error:
        raise RenderError(
            f"{where} is {_describe(value)}: {_ALLOWED}. {error}"
        ) from error


def _is_plotting_leftover(value: object) -> bool:
    """Say whether a sequence or array holds artists, such as `return fig, axes`."""
    if isinstance(value, np.ndarray):
        return value.dtype == object and any(map(_is_artist, value.flat))
    return isinstance(value, list | tuple) and any(
        _is_artist(item) or _is_plotting_leftover(item) for item in value
    )


def _is_artist(value: object) -> bool:
    return figure_of(value) is not None


def _describe(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of dtype {value.dtype} and shape {value.shape}"
    name = type(value).__name__
    if isinstance(value, list | tuple):
        inner = sorted({type(item).__name__ for item in value})[:5]
        return f"a {name} of {', '.join(inner)}" if inner else f"an empty {name}"
    return f"a value of type {name}"
