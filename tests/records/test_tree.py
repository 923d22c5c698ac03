"""The structure of a value: split from its arrays and joined again."""

import collections
import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from theseus_track.errors import BadInput
from theseus_track.records import dumps, host_leaf, join_tree, loads, split_tree

arrays = hnp.arrays(
    st.sampled_from([np.float32, np.int8, np.bool_]),
    hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3),
)
values = st.recursive(
    arrays | st.none(),
    lambda child: (
        st.dictionaries(st.text(max_size=4), child, max_size=3)
        | st.lists(child, max_size=3)
        | st.lists(child, max_size=3).map(tuple)
    ),
    max_leaves=8,
)


def _same(a: object, b: object) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return [*a] == [*b] and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        pairs = zip(a, b, strict=False)
        alike = isinstance(a, list) is isinstance(b, list) and len(a) == len(b)
        return alike and all(_same(x, y) for x, y in pairs)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(
            a, b, equal_nan=a.dtype.kind == "f"
        )
    return a is None and b is None


@given(values)
def test_a_value_comes_back_as_it_went(value: object) -> None:
    structure, leaves = split_tree(value, host_leaf)
    again = loads(dumps(structure))
    assert _same(join_tree(again, [array for _, array in leaves]), value)


def test_leaves_are_named_by_their_place() -> None:
    value = {"blocks_0/attn": (1.5, [np.arange(2)]), "n": np.float32(1)}
    _, leaves = split_tree(value, host_leaf)
    assert [path for path, _ in leaves] == ["blocks_0/attn/0", "blocks_0/attn/1/0", "n"]
    assert split_tree(np.arange(2), host_leaf)[1][0][0] == ""


def test_a_named_tuple_keeps_its_fields_and_no_class() -> None:
    Pair = collections.namedtuple("Pair", ["mean", "std"])
    structure, leaves = split_tree(Pair(1.0, 2.0), host_leaf)
    assert structure == {"n": {"mean": 0, "std": 1}}
    back = join_tree(structure, [array for _, array in leaves])
    assert isinstance(back, tuple)
    assert back._asdict() == {"mean": 1.0, "std": 2.0}  # type: ignore[attr-defined]


def test_a_dataclass_is_kept_as_a_dict_of_its_fields() -> None:
    @dataclasses.dataclass
    class Moments:
        mean: float
        std: float

    structure, leaves = split_tree({"a": Moments(1.0, 2.0)}, host_leaf)
    assert structure == {"d": {"a": {"d": {"mean": 0, "std": 1}}}}
    assert [path for path, _ in leaves] == ["a/mean", "a/std"]


def test_the_leaf_function_decides_what_a_leaf_becomes() -> None:
    structure, leaves = split_tree(["x", "y"], lambda leaf, path: f"{path}={leaf}")
    assert (structure, leaves) == ({"l": [0, 1]}, [("0", "0=x"), ("1", "1=y")])


@pytest.mark.parametrize("leaf", ["text", object(), 1j, b"x"])
def test_a_leaf_that_is_no_array_is_refused_by_its_place(leaf: object) -> None:
    with pytest.raises(BadInput, match=r"a/0.*" + type(leaf).__name__):
        split_tree({"a": [leaf]}, host_leaf)


def test_a_key_that_is_no_text_is_refused() -> None:
    with pytest.raises(BadInput, match="3"):
        split_tree({"a": {3: np.zeros(1)}}, host_leaf)


@pytest.mark.parametrize(
    "structure",
    [
        1,
        -1,
        True,
        "x",
        1.5,
        [],
        {},
        {"x": []},
        {"d": []},
        {"l": {}},
        {"d": {}, "l": []},
    ],
)
def test_a_malformed_structure_is_refused(structure: object) -> None:
    with pytest.raises(BadInput):
        join_tree(structure, [np.zeros(1)])  # type: ignore[arg-type]
