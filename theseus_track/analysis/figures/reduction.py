"""Reduce an array that has more cells than a figure can show."""

import math

import numpy as np

__all__ = ["MAX_CELLS", "REDUCED", "block_size", "extremes", "reduced"]

MAX_CELLS = 512
"""Cells along one side that are drawn as they are; more would be finer than print."""
REDUCED = 384
"""Cells along one side that remain where there are more: noise of so many still fits
into a megabyte, as PDF and PNG together."""


def block_size(count: int, most: int = MAX_CELLS, remain: int = REDUCED) -> int:
    """Return how many cells become one: 1 up to `most`, else so that few `remain`."""
    return 1 if count <= most else math.ceil(count / remain)


def reduced(
    values: np.ndarray, shown: np.ndarray, blocks: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Average blocks of cells.

    Args:
        values: [..., row, column], float64.
        shown: The same shape; False where a mask hides the cell.
        blocks: How many rows and how many columns become one; the last block of an
            axis may be smaller.

    Returns:
        The mean of the finite shown cells of each block, and whether the block has
        a shown cell. A NaN or +inf, which is a fault somebody looks for, marks its
        whole block; -inf, which is how attention is masked, marks a block only when
        it has no finite cell.
    """
    if blocks == (1, 1):
        return values, shown
    finite = np.isfinite(values) & shown
    # Divided before they are added, so that values near the largest float do not
    # overflow.
    size = math.prod(blocks)
    total = _sums(np.where(finite, values, 0.0), blocks, scale=1.0 / size)
    count = _sums(finite, blocks)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total * (size / count)
    if finite.all():
        return mean, np.ones(mean.shape, bool)
    mean = np.where(count > 0, mean, -np.inf)
    mean = np.where(_sums((values == np.inf) & shown, blocks) > 0, np.inf, mean)
    mean = np.where(_sums(np.isnan(values) & shown, blocks) > 0, np.nan, mean)
    return mean, _sums(shown, blocks) > 0


def extremes(
    values: np.ndarray, shown: np.ndarray, blocks: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest finite shown value of each block.

    Args:
        values: [..., row, column], float64.
        shown: The same shape; False where a mask hides the cell.
        blocks: How many rows and how many columns become one.

    Returns:
        [..., row, column] of blocks, twice; NaN where a block has no such value.
    """
    finite = np.isfinite(values) & shown
    low = _blockwise(np.minimum, np.where(finite, values, np.inf), blocks)
    high = _blockwise(np.maximum, np.where(finite, values, -np.inf), blocks)
    nothing = low > high
    return np.where(nothing, np.nan, low), np.where(nothing, np.nan, high)


def _blockwise(
    function: np.ufunc, values: np.ndarray, blocks: tuple[int, int]
) -> np.ndarray:
    result = values
    for axis, block in zip((-2, -1), blocks, strict=True):
        starts = np.arange(0, result.shape[axis], block)
        result = function.reduceat(result, starts, axis=axis)
    return result


def _sums(
    values: np.ndarray, blocks: tuple[int, int], scale: float | None = None
) -> np.ndarray:
    result = values if scale is None else values * scale
    for axis, block in zip((-2, -1), blocks, strict=True):
        starts = np.arange(0, result.shape[axis], block)
        result = np.add.reduceat(result, starts, axis=axis, dtype=np.float64)
    return result
