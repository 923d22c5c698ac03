"""Turn what people pass to a helper into numpy arrays of real numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theseus_track.errors import BadInput

__all__ = [
    "bounded",
    "dtype_of",
    "extent_of",
    "is_numeric",
    "is_table",
    "json_options",
    "numbers",
    "plain",
]

_LARGEST = 1e300
"""The difference of two larger numbers would not be a number to matplotlib."""


def numbers(value: object, what: str) -> np.ndarray:
    """Return a value as an array of float64, or say why it cannot be drawn.

    Args:
        value: Numbers as numpy, JAX or pandas data or nested lists; booleans; None
            for a missing number. bfloat16, float8 and int4 are upcast.
        what: The parameter, for the message.

    Raises:
        BadInput: For complex numbers, PRNG keys, text, dates and ragged lists.
    """
    array = plain(value, what)
    if array.dtype.kind == "c":
        raise BadInput(
            f"{what} holds complex numbers ({array.dtype}), which have no single "
            "colour or height. Pass abs(values), values.real or values.imag."
        )
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    try:
        if array.dtype.kind in "OV" and array.dtype.names is None:
            return array.astype(np.float64)
    except (TypeError, ValueError):
        pass
    raise BadInput(
        f"{what} must hold numbers, not {_describe(array)}. Pass an array of numbers."
    )


def plain(value: object, what: str) -> np.ndarray:
    """Return a value as a numpy array of whatever it holds.

    Raises:
        BadInput: When numpy cannot make a regular array of it.
    """
    try:
        array = np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value)
    except (TypeError, ValueError) as error:
        raise BadInput(
            f"{what} is of type {type(value).__name__} and cannot be turned into an "
            f"array: {error}. Pass numbers as an array or as lists of equal length."
        ) from error
    if array.dtype.kind == "U" and not isinstance(value, np.ndarray):
        # Numpy's own text type drops a NUL at the end of a token.
        return np.asarray(value, dtype=object)
    return array


def dtype_of(data: object) -> str:
    """Return the dtype of what was passed, "" where it has none of its own.

    Args:
        data: An array or series; or a mapping of such, all of one dtype.
    """
    if isinstance(data, Mapping):
        names = {dtype_of(value) for value in data.values()}
        return names.pop() if len(names) == 1 else ""
    name = getattr(getattr(data, "dtype", None), "name", "")
    return "" if name == "object" else str(name)


def extent_of(values: np.ndarray, data: object) -> str:
    """Say how many values there are, of which dtype, and from where to where."""
    finite = values[np.isfinite(values)]
    dtype = dtype_of(data)
    told = f"{values.size} {dtype} values" if dtype else f"{values.size} values"
    if not finite.size:
        return told
    return f"{told}, {finite.min():.4g} to {finite.max():.4g}"


def is_numeric(array: np.ndarray) -> bool:
    """Say whether an array holds numbers; booleans count as categories."""
    if array.dtype.kind in "iuf":
        return True
    if array.dtype.kind == "V":
        return array.dtype.names is None
    return array.dtype.kind == "O" and all(
        isinstance(item, int | float | np.number) and not isinstance(item, bool)
        for item in array.flat
        if item is not None
    )


def is_table(value: object) -> bool:
    """Say whether a value has named columns: a mapping or a data frame."""
    return isinstance(value, Mapping) or (
        hasattr(value, "columns") and hasattr(value, "to_numpy")
    )


def json_options(options: Mapping[str, Any] | None, what: str) -> dict[str, Any]:
    """Return drawing options, which a View keeps, as plain values.

    Raises:
        BadInput: When an option is neither number, text, boolean, None nor a list.
    """
    result: dict[str, Any] = {}
    for key, value in (options or {}).items():
        kept = value.item() if isinstance(value, np.generic) else value
        if isinstance(kept, tuple | list):
            kept = list(kept)
        if not isinstance(kept, str | int | float | bool | list | None):
            raise BadInput(
                f"{what}: {key}={value!r:.80} is a {type(value).__name__}; options are "
                "kept with the figure as data, so they must be numbers, text, booleans "
                "or lists of those. Set it on the returned figure instead."
            )
        result[str(key)] = kept
    return result


def _describe(array: np.ndarray) -> str:
    first = next(iter(array.flat), None)
    if array.dtype.kind == "O" and first is not None:
        return f"objects such as {first!r:.60}"
    return f"data of dtype {array.dtype}"


def bounded(values: np.ndarray, notes: list[str]) -> np.ndarray:
    """Bound values so that their differences are finite; note it where it matters."""
    with np.errstate(invalid="ignore"):
        beyond = np.isfinite(values) & (np.abs(values) > _LARGEST)
    if not beyond.any():
        return values
    notes.append(f"values beyond ±{_LARGEST:g} are drawn as that")
    return np.where(beyond, np.sign(values) * _LARGEST, values)
