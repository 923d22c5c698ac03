"""Turn data frames, series and dates into plain values that JSON has."""

import dataclasses
import datetime
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from theseus_track.errors import RenderError

__all__ = ["plain_value"]


def plain_value(value: object) -> object:
    """Replace what pandas and calendars bring, also inside of dicts and lists.

    Args:
        value: Anything that `plot` may return.

    Returns:
        The same, but with a data frame as a dict from column to list, in the order
        of its columns, with a named or labelled index as the first columns; a series
        as a list, or with its index as a data frame; a missing value as None; and
        dates and times as text in ISO 8601. Integers stay integers.

    Raises:
        RenderError: When two columns of a data frame have the same name.
    """
    if isinstance(value, Mapping):
        return {key: plain_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {f.name: plain_value(getattr(value, f.name)) for f in fields}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "mM":
        return value.astype(str).tolist()
    pandas: Any = sys.modules.get("pandas")
    # Nobody imported pandas, or another thread is about to (wandb does), so nobody can
    # hold a data frame.
    known = hasattr(pandas, "DataFrame")
    return _from_pandas(value, pandas) if known else _dated(value)


def _dated(value: object) -> object:
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value) if isinstance(value, datetime.timedelta) else value


def _from_pandas(value: Any, pandas: Any) -> object:
    if isinstance(value, pandas.DataFrame):
        return _columns(value, pandas)
    if isinstance(value, pandas.Series):
        if isinstance(value.index, pandas.RangeIndex):
            return _cells(value)
        name = "value" if value.name is None else value.name
        return _columns(value.to_frame(name), pandas)
    if isinstance(value, pandas.Index | pandas.api.extensions.ExtensionArray):
        return [plain_value(item) for item in value]
    if value is pandas.NA or value is pandas.NaT:
        return None
    return _dated(value)


def _columns(frame: Any, pandas: Any) -> dict[str, object]:
    if not isinstance(frame.index, pandas.RangeIndex) or frame.index.name is not None:
        frame = frame.reset_index()
    names = [_name(column) for column in frame.columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise RenderError(
            f"plot returned a data frame with two columns of the name {twice!r}; the "
            "columns of a table have different names. Rename one."
        )
    return {name: _cells(frame.iloc[:, i]) for i, name in enumerate(names)}


def _name(column: object) -> str:
    """Return the name of a column; one of several levels has them joined."""
    return "/".join(map(str, column)) if isinstance(column, tuple) else str(column)


def _cells(series: Any) -> list[object]:
    return [plain_value(item) for item in series.tolist()]
