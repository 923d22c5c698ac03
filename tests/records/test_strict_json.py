"""Strict JSON: what goes in comes out, and any parser reads it."""

import dataclasses
import json
import math
from pathlib import PurePosixPath

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theseus_track.errors import BadInput
from theseus_track.records import dumps, loads, to_json_value

texts = st.text(st.characters(codec=None, exclude_categories=()))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda child: st.lists(child) | st.dictionaries(texts, child),
    max_leaves=20,
)


def _strictly(text: str) -> object:
    def refuse(token: str) -> object:
        raise AssertionError(f"{token} is no JSON")

    return json.loads(text, parse_constant=refuse)


@given(json_values)
def test_json_values_come_back_as_they_went(value: object) -> None:
    text = dumps(value)
    expected = to_json_value(value)
    assert loads(text) == _strictly(text) == expected
    assert text.isascii()
    assert "\n" not in text


@given(st.floats())
def test_a_float_comes_back_through_its_text(value: float) -> None:
    back = loads(dumps(value))
    assert isinstance(back, float | str)
    assert float(back) == value or (math.isnan(float(back)) and math.isnan(value))


def test_numbers_without_a_json_form_are_named() -> None:
    value = {
        "mean": math.nan,
        "max": math.inf,
        "rows": [[1.0, -math.inf]],
        "n": np.float32(1),
        "b": ml_dtypes.bfloat16(0.5),
        "a": np.array([np.nan, 2.0], np.float32),
    }
    assert _strictly(dumps(value)) == {
        "mean": "NaN",
        "max": "Infinity",
        "rows": [[1.0, "-Infinity"]],
        "n": 1.0,
        "b": 0.5,
        "a": ["NaN", 2.0],
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.array([[True]]), [[True]]),
        (np.arange(2, dtype=ml_dtypes.int4), [0, 1]),
        (np.array([1.5], ml_dtypes.bfloat16), [1.5]),
        (np.array([None, "x"], object), [None, "x"]),
        ((1, 2), [1, 2]),
        ({3, 1, 2}, [1, 2, 3]),
        ({1: "a"}, {"1": "a"}),
        (PurePosixPath("a/b"), "a/b"),
    ],
)
def test_what_people_return_is_taken(value: object, expected: object) -> None:
    assert loads(dumps(value)) == expected


def test_a_lone_surrogate_survives() -> None:
    assert loads(dumps({"\ud800": "a\udfff"})) == {"\ud800": "a\udfff"}


def test_a_dataclass_is_an_object() -> None:
    @dataclasses.dataclass
    class Point:
        x: float
        tags: tuple[str, ...]

    assert loads(dumps(Point(math.nan, ("a",)))) == {"x": "NaN", "tags": ["a"]}


@pytest.mark.parametrize(
    "value", [object(), b"bytes", 1j, np.array([1j]), np.array([b"x"]), int, len]
)
def test_what_json_cannot_hold_is_refused_by_its_type(value: object) -> None:
    with pytest.raises(BadInput, match="cannot be kept as JSON"):
        dumps([value])


def test_two_keys_of_one_text_are_refused() -> None:
    with pytest.raises(BadInput, match="'1'"):
        dumps({1: "a", "1": "b"})


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity"])
def test_tokens_that_are_no_json_are_refused(token: str) -> None:
    with pytest.raises(ValueError, match=token):
        loads(f'{{"a": {token}}}')
