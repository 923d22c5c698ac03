"""Floats that are kept in 16 bits although they were computed in more."""

import numpy as np

__all__ = ["NARROW", "narrowed", "widened"]

NARROW = "float16"
"""The dtype that an analysis may ask to be stored in."""


def narrowed(array: np.ndarray) -> np.ndarray:
    """Return floats as float16, if all of the finite ones stay finite.

    Args:
        array: Of any dtype; what is no wider float is returned as it is.
    """
    if array.dtype.kind != "f" or array.dtype.itemsize <= 2:
        return array
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        narrow = array.astype(np.float16)
    # Numbers above 65504 would become infinite: these arrays stay as they are.
    return narrow if np.array_equal(np.isfinite(array), np.isfinite(narrow)) else array


def widened(array: np.ndarray, origin: str | None) -> np.ndarray:
    """Return what was narrowed in the dtype that it is used in.

    Args:
        array: As it is stored.
        origin: Its dtype on the device, or None when it is stored in that.

    Returns:
        float64 where it was float64, else float32; an array that is not narrow, as it
        is. Sums over float16 would overflow.
    """
    if array.dtype.name != NARROW or origin is None:
        return array
    return array.astype(np.float64 if origin == "float64" else np.float32)
