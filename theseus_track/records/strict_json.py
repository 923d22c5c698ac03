"""Strict JSON for every file of ours: no NaN or Infinity tokens, one encoding of them.

JSON has no non-finite numbers. They are written as the strings "NaN",
"Infinity" and "-Infinity", which JavaScript's `Number()` and Python's `float()`
read back. Everything is UTF-8-safe ASCII, so a lone surrogate survives as an
escape.
"""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence, Set
from pathlib import PurePath
from typing import TypeAlias

import numpy as np

from theseus_track.errors import BadInput

__all__ = ["Json", "dumps", "loads", "to_json_value"]

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
"""A value that strict JSON can hold."""


def to_json_value(value: object) -> Json:
    """Turn what people return into a strict JSON value.

    Args:
        value: None, booleans, numbers, text, numpy scalars and arrays, mappings,
            sequences, sets (sorted by their text), dataclasses and paths, nested.

    Returns:
        Dicts with string keys, lists, strings, finite numbers, booleans, None.

    Raises:
        BadInput: When a leaf is of another type, or two keys have the same text.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _number(float(value))
    if isinstance(value, np.generic | np.ndarray):
        return _from_numpy(np.asarray(value))
    if isinstance(value, Mapping):
        return _from_mapping(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {f.name: to_json_value(getattr(value, f.name)) for f in fields}
    if isinstance(value, Set):
        return sorted((to_json_value(item) for item in value), key=repr)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [to_json_value(item) for item in value]
    if isinstance(value, PurePath):
        return str(value)
    raise BadInput(
        f"A value of type {type(value).__name__} cannot be kept as JSON: "
        f"{value!r:.80}. Use numbers, text, booleans, None, dicts, lists or numpy "
        "arrays."
    )


def dumps(value: object, *, indent: int | None = None) -> str:
    """Write a value as strict JSON on one line, or indented.

    Args:
        value: Anything that `to_json_value` takes.
        indent: Blanks per level, or None for the compact form on one line.

    Returns:
        ASCII text that any JSON parser reads.
    """
    separators = (",", ":") if indent is None else None
    return json.dumps(
        to_json_value(value), allow_nan=False, indent=indent, separators=separators
    )


def loads(text: str | bytes) -> Json:
    """Read strict JSON.

    Raises:
        ValueError: When the text is not JSON, or holds a NaN or Infinity token.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    parsed: Json = _DECODER.decode(text)
    return parsed


def _refuse_constant(token: str) -> float:
    raise ValueError(f"{token} is not JSON.")


# `json.loads` makes one for each call, which a ledger of 100 000 lines would notice.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _from_mapping(value: Mapping[object, object]) -> dict[str, Json]:
    result: dict[str, Json] = {}
    for key, item in value.items():
        text = key if isinstance(key, str) else str(key)
        if text in result:
            raise BadInput(
                f"Two keys of a dict have the same text {text!r}; JSON keys are text. "
                "Rename one of them."
            )
        result[text] = to_json_value(item)
    return result


def _from_numpy(array: np.ndarray) -> Json:
    if array.dtype.kind in "biufUS":
        return to_json_value(array.tolist())
    if array.dtype.kind == "V" and array.dtype.names is None:
        # The small floats of ml_dtypes (bfloat16, float8) register as kind "V".
        return to_json_value(array.astype(np.float32).tolist())
    if array.dtype.kind == "O":
        return to_json_value(array.tolist())
    raise BadInput(
        f"An array of dtype {array.dtype} cannot be kept as JSON. "
        "Return its real parts, or data of a number, boolean or text dtype."
    )
