"""Metrics with at most so many points: nothing that stands out is lost."""

import itertools

import numpy as np

from theseus_track.records.strict_json import Json
from theseus_track.store import Curve

__all__ = ["curve_json", "thinned"]


def thinned(value: np.ndarray, points: int) -> np.ndarray:
    """Return which rows to keep: of each stretch its lowest and its highest.

    Args:
        value: float64 [row], in the order of the curve.
        points: The most to keep, >= 4. The first and the last are kept.

    Returns:
        int64 [kept], ascending.
    """
    if len(value) <= points:
        return np.arange(len(value))
    # A gap of NaN stays one: a stretch of nothing else keeps its first row.
    low, high = np.where(np.isnan(value), np.inf, value), value.copy()
    high[np.isnan(value)] = -np.inf
    edges = np.linspace(0, len(value), (points - 2) // 2 + 1).astype(int)
    kept = {0, len(value) - 1}
    for begin, end in itertools.pairwise(edges):
        kept.add(int(begin + low[begin:end].argmin()))
        kept.add(int(begin + high[begin:end].argmax()))
    return np.array(sorted(kept))


def curve_json(curve: Curve, points: int) -> dict[str, Json]:
    """Return a metric by step as columns of at most so many points."""
    kept = thinned(curve.value, points)
    tokens: list[Json] = [n if n >= 0 else None for n in curve.tokens[kept].tolist()]
    return {
        "step": curve.step[kept].tolist(),
        "wall_time": curve.wall_time[kept].tolist(),
        "tokens": tokens,
        "value": curve.value[kept].tolist(),
        "total": len(curve.value),
    }
