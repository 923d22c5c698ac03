"""Inputs are named as in the signature, complete, and cannot reach the model."""

import copy
from typing import Any

import numpy as np
import pytest

from theseus_track.capture import Inputs
from theseus_track.capture.inputs import bind, frozen


class Layer:
    def method(self, x, /, keys, *rest, scale=2.0, mask=None, **more):
        """Take every kind of parameter."""


def test_every_parameter_is_named_and_defaults_are_applied():
    named = bind(Layer.method, (1, 2, 3, 4), {"mask": 5, "other": 6})

    assert named == {
        "x": 1,
        "keys": 2,
        "rest": (3, 4),
        "scale": 2.0,
        "mask": 5,
        "more": {"other": 6},
    }
    assert list(named) == ["x", "keys", "rest", "scale", "mask", "more"]
    assert bind(Layer.method, (1,), {"keys": None})["keys"] is None


def test_a_mapping_with_attributes():
    inputs = Inputs({"x": 1, "scale": 2.0}, output=3)

    assert inputs.x == inputs["x"] == 1
    assert dict(inputs) == {"x": 1, "scale": 2.0}
    assert inputs.output == 3
    assert dir(inputs) == ["output", "scale", "x"]
    assert len(inputs) == 2
    assert repr(inputs) == "Inputs(x=1, scale=2.0)"


def test_a_parameter_hides_a_method_of_the_same_name():
    inputs: Any = Inputs({"keys": 1, "values": 2, "output": 3}, output=4)

    assert (inputs.keys, inputs.values) == (1, 2)
    assert (inputs.output, inputs["output"]) == (4, 3)
    assert list(inputs) == ["keys", "values", "output"]


def test_an_unknown_name_lists_those_there_are():
    inputs = Inputs({"x": 1, "scale": 2.0})

    with pytest.raises(AttributeError, match=r"'y'.*x, scale.*output"):
        _ = inputs.y
    with pytest.raises(KeyError):
        _ = inputs["y"]
    assert not hasattr(inputs, "__deepcopy__")
    assert dict(copy.copy(inputs)) == dict(inputs)


def test_they_are_read_only():
    inputs = Inputs({"x": 1})

    with pytest.raises(AttributeError, match="read-only"):
        inputs.x = 2
    with pytest.raises(AttributeError, match="read-only"):
        del inputs.x


def test_containers_are_copies_and_numpy_arrays_are_locked():
    rows = np.zeros(3)
    given = {"rows": rows, "list": [1, 2], "object": object(), "none": None}

    copied = frozen(given)
    copied["list"].append(3)

    assert given["list"] == [1, 2]
    assert copied["object"] is given["object"]
    with pytest.raises(ValueError, match="read-only"):
        copied["rows"][0] = 1
    rows[0] = 1


def test_a_dict_that_jax_cannot_sort_is_passed_on():
    odd = {1: "a", "b": 2}
    assert frozen(odd) is odd
