"""Settings from `key=value` texts and from Python, checked by their field's type."""

import ast
import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from theseus_track.errors import BadInput, describe_unknown

__all__ = ["check_settings", "parse_settings"]

# A type as an annotation gives it: a class, a union, a generic alias.
Hint = Any

_BOOLS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


def parse_settings(config: type, texts: Iterable[str]) -> dict[str, object]:
    """Read `key=value` texts, each value by the type of its field.

    Args:
        config: The dataclass of hyperparameters.
        texts: Such as "steps=100", "betas=0.9,0.95", "keep=none". A key that comes
            twice takes the last value.

    Returns:
        Field name -> value.

    Raises:
        BadInput: When a text has no "=", a key is no field, or a value does not
            fit; names the value and what is allowed.
    """
    hints = _hints(config)
    parsed = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise BadInput(
                f"The setting {text!r} is not of the form key=value, such as steps=100."
            )
        hint = _hint_of(key, hints)
        try:
            parsed[key] = _parse(hint, value.strip())
        except ValueError as error:
            raise _misfit(key, value, hint) from error
    return parsed


def check_settings(config: type, settings: Mapping[str, object]) -> dict[str, object]:
    """Check values that came from Python against the types of their fields.

    Args:
        config: The dataclass of hyperparameters.
        settings: Field name -> value. An int is taken where a float is wanted.

    Returns:
        The same settings.

    Raises:
        BadInput: When a key is no field or a value does not fit.
    """
    hints = _hints(config)
    for key, value in settings.items():
        hint = _hint_of(key, hints)
        if not _fits(hint, value):
            raise _misfit(key, value, hint)
    return dict(settings)


def _hints(config: type) -> dict[str, Hint]:
    return {field.name: _resolve(field) for field in dataclasses.fields(config)}


def _resolve(field: "dataclasses.Field[Any]") -> Hint:
    # `from __future__ import annotations` leaves texts. What is neither a builtin
    # nor from typing cannot be found from here, and is not checked.
    holder = type("Holder", (), {"__annotations__": {field.name: field.type}})
    try:
        return typing.get_type_hints(holder, vars(typing))[field.name]
    except NameError:
        return Any


def _hint_of(key: str, hints: Mapping[str, Hint]) -> Hint:
    if key not in hints:
        raise BadInput(describe_unknown("setting", key, hints))
    return hints[key]


def _parse(hint: Hint, text: str) -> object:
    origin: Any = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return _parse_union(typing.get_args(hint), text)
    if origin is typing.Literal:
        return _choose(typing.get_args(hint), text)
    if origin is tuple or hint is tuple:
        return _parse_tuple(typing.get_args(hint) or (str, ...), text)
    if hint is bool:
        return _choose_bool(text)
    if hint is types.NoneType:
        return _choose((None,), text.capitalize() if text else "None")
    if hint is int:
        return int(text.replace("_", ""), 0)
    if hint in (float, str):
        return hint(text)
    if hint is Any:
        return _guess(text)
    raise ValueError(f"{hint} cannot be given as text")


def _parse_union(hints: Iterable[Hint], text: str) -> object:
    # None first and text last, so that "none" and "3" keep their meaning.
    ordered = sorted(hints, key=lambda hint: (hint is str, hint is not types.NoneType))
    for hint in ordered:
        try:
            return _parse(hint, text)
        except ValueError:
            continue
    raise ValueError(text)


def _parse_tuple(hints: tuple[Hint, ...], text: str) -> tuple[object, ...]:
    inner = text.strip("()[] ")
    items = [item.strip() for item in inner.split(",") if item.strip()]
    if hints[-1] is Ellipsis:
        return tuple(_parse(hints[0], item) for item in items)
    return tuple(_parse(h, item) for h, item in zip(hints, items, strict=True))


def _choose(choices: tuple[object, ...], text: str) -> object:
    for choice in choices:
        if str(choice) == text:
            return choice
    raise ValueError(text)


def _choose_bool(text: str) -> bool:
    if text.lower() not in _BOOLS:
        raise ValueError(text)
    return _BOOLS[text.lower()]


def _guess(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _fits(hint: Hint, value: object) -> bool:
    origin: Any = typing.get_origin(hint)
    args = typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(arg, value) for arg in args)
    if origin is typing.Literal:
        return value in args
    if origin is tuple and isinstance(value, tuple):
        if args[-1] is Ellipsis:
            return all(_fits(args[0], item) for item in value)
        return len(args) == len(value) and all(map(_fits, args, value))
    if isinstance(value, bool) and hint in (int, float):
        return False
    if hint is float:
        return isinstance(value, int | float)
    kind = origin or hint
    # typing.Any is a class since Python 3.11, but nothing is an instance of it.
    return kind is Any or not isinstance(kind, type) or isinstance(value, kind)


def _misfit(key: str, value: object, hint: Hint) -> BadInput:
    return BadInput(f"{key}={value!r} does not fit: {key} takes {_words(hint)}.")


def _words(hint: Hint) -> str:
    origin: Any = typing.get_origin(hint)
    args = typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_words(arg) for arg in args)
    if origin is typing.Literal:
        return "one of " + ", ".join(map(repr, args))
    if origin is tuple:
        inner = ", ".join("..." if arg is Ellipsis else _words(arg) for arg in args)
        return f"a tuple ({inner})"
    words = {
        int: "an integer",
        float: "a number",
        bool: "true or false",
        str: "a text",
        types.NoneType: "none",
    }
    return words.get(hint) or str(getattr(hint, "__name__", hint))
