"""Records to JSON objects and back, by their field types.

A decoder ignores fields that it does not know and takes the default of fields
that are missing, so that older and newer ledgers are both read.
"""

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from theseus_track.errors import BadInput
from theseus_track.records.strict_json import Json, to_json_value

__all__ = ["decode", "encode"]

T = TypeVar("T")


def encode(record: object) -> dict[str, Json]:
    """Return the fields of a record as a strict JSON object."""
    value = to_json_value(record)
    if not isinstance(value, dict):
        raise BadInput(f"{record!r:.80} is not a record.")
    return value


def decode(cls: type[T], value: object) -> T:
    """Build a record from its JSON object.

    Args:
        cls: The dataclass to build.
        value: What `encode` gave, perhaps from another version.

    Returns:
        The record.

    Raises:
        BadInput: When a required field is missing or a value has another type.
    """
    # The exact type first, here and below: a class that is abstract asks longer.
    if type(value) is not dict and not isinstance(value, Mapping):
        raise BadInput(f"A {cls.__name__} must be a JSON object, not {value!r:.80}.")
    fields: Any = value
    kwargs: dict[str, object] = {}
    record: Any = cls  # mypy takes no type[T] for hashable.
    name = ""
    try:
        for name, convert in _converters(record):
            if name in fields:
                kwargs[name] = convert(fields[name])
    except _MismatchError as error:
        raise BadInput(f"{cls.__name__}.{name} must be {error}.") from error
    try:
        return cls(**kwargs)
    except TypeError as error:
        raise BadInput(f"A {cls.__name__} lacks fields: {error}.") from error


class _MismatchError(Exception):
    """A value is of another type than its field; says what was allowed."""

    def __init__(self, allowed: str, value: object) -> None:
        super().__init__(f"{allowed}, not {value!r:.80}")


_Converter: TypeAlias = Callable[[object], object]


@functools.cache
def _converters(cls: Any) -> tuple[tuple[str, _Converter], ...]:
    # Made once per class: a ledger of 100 000 lines is decoded in seconds.
    hints = typing.get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls)]
    return tuple((name, _converter(hints[name])) for name in names)


def _converter(hint: Any) -> _Converter:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        given = [arg for arg in args if arg is not types.NoneType]
        # Json is the one union of several types, and every JSON value is one.
        return _unchecked if len(given) > 1 else _optional(_converter(given[0]))
    if origin is tuple:
        return _tuple_of(_converter(args[0]))
    if origin is Mapping:
        return _mapping_of(_converter(args[1]))
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return functools.partial(decode, hint)
    return _number if hint is float else _plain(hint)


def _unchecked(value: object) -> object:
    return value


def _optional(convert: _Converter) -> _Converter:
    return lambda value: None if value is None else convert(value)


def _tuple_of(convert: _Converter) -> _Converter:
    def from_list(value: object) -> object:
        if type(value) is not list and not isinstance(value, list | tuple):
            raise _MismatchError("a list", value)
        return tuple(map(convert, value))

    return from_list


def _mapping_of(convert: _Converter) -> _Converter:
    def from_object(value: object) -> object:
        if type(value) is not dict and not isinstance(value, Mapping):
            raise _MismatchError("an object", value)
        if convert is _unchecked:
            return {**value}
        return {key: convert(item) for key, item in value.items()}

    return from_object


def _number(value: object) -> object:
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _MismatchError("a number", value)
    return float(value)


def _plain(hint: type) -> _Converter:
    def checked(value: object) -> object:
        if type(value) is hint:
            return value
        # A bool is an int to Python, and to nobody else.
        if not isinstance(value, hint) or (isinstance(value, bool) and hint is int):
            raise _MismatchError(f"of type {hint.__name__}", value)
        return value

    return checked
