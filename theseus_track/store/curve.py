"""One metric over the steps of a run, as arrays."""

import dataclasses
from array import array
from collections.abc import Iterable, Set

import numpy as np

from theseus_track.store.journal_index import JournalIndex

__all__ = ["Curve", "curve_of"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One metric over a run, by step; nothing that a resumed attempt replaced.

    Attributes:
        step: int64 [row].
        wall_time: float64 [row], seconds since the epoch, UTC.
        tokens: int64 [row], -1 where unknown.
        value: float64 [row].
    """

    step: np.ndarray
    wall_time: np.ndarray
    tokens: np.ndarray
    value: np.ndarray


def curve_of(
    journals: Iterable[JournalIndex], name: str, hidden: Set[tuple[str, int]]
) -> Curve:
    """Return a metric by step; empty where no journal has one of that name.

    Args:
        journals: The journals of a run, the earliest first.
        name: The name of the metric.
        hidden: Writer and line of each row to leave out.
    """
    found = [_rows(one, name, hidden) for one in journals if name in one.metrics]
    step, wall_time, tokens, value = (
        np.concatenate(columns) for columns in zip(*found or [_EMPTY], strict=True)
    )
    order = np.argsort(step, kind="stable")
    return Curve(
        step=step[order],
        wall_time=wall_time[order],
        tokens=tokens[order],
        value=value[order],
    )


_EMPTY = (np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64), np.empty(0))


def _rows(
    journal: JournalIndex, name: str, hidden: Set[tuple[str, int]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    places, values = journal.metrics[name]
    # Copies: a view would keep the columns from growing.
    rows, value = _copied(places), _copied(values)
    if hidden:
        seq = journal.columns["seq"]
        kept = [(journal.stem, seq[place]) not in hidden for place in places]
        rows, value = rows[kept], value[kept]
    columns = (journal.columns[name] for name in ("step", "wall_time", "extra"))
    step, wall_time, tokens = (_copied(column)[rows] for column in columns)
    return step, wall_time, tokens, value


def _copied(column: "array[int] | array[float]") -> np.ndarray:
    return np.array(column, np.dtype(column.typecode))
