"""Names, steps and file names: checked where they are made."""

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from theseus_track.errors import BadInput
from theseus_track.records import check_name, check_step, safe_name

any_text = st.text(st.characters(codec=None, exclude_categories=()))
WINDOWS = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


@pytest.mark.parametrize(
    "name", ["a", "A-b_c.9", "x" * 80, "metrics", "_step", "NUL", ".a", "..."]
)
def test_a_name_is_taken_as_it_is(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x" * 81,
        "a b",
        "a/b",
        "é",
        "a\n",
        "attn: 0",
        "../x",
        ".",
        "..",
        None,
        3,
        b"a",
    ],
)
def test_a_bad_name_is_named(name: object) -> None:
    with pytest.raises(BadInput, match=re.escape(repr(name))):
        check_name(name)


@pytest.mark.parametrize(
    "step",
    [0, 7, np.int32(7), np.uint64(7), np.array(7), np.array(7, np.int8), 2**63 - 1],
)
def test_a_step_becomes_a_python_int(step: object) -> None:
    assert type(check_step(step)) is int
    assert check_step(step) == step


@pytest.mark.parametrize(
    "step", [-1, np.int64(-1), 1.0, np.float32(1), True, "1", None, np.array([1, 2])]
)
def test_a_bad_step_is_named(step: object) -> None:
    with pytest.raises(BadInput, match="integer >= 0"):
        check_step(step)


@given(any_text, any_text)
@example("", "\0")
@example("con", "CON")
@example(".63on", "con")
@example("a", "a.")
@example("a/b", "a_b")
@example("\ud83d\ude00", "\U0001f600")
def test_two_texts_never_have_one_file_name(a: str, b: str) -> None:
    assert (safe_name(a) == safe_name(b)) == (a == b)


@given(any_text)
@example("NUL")
@example("..")
@example("C:\\x")
@example("/abs")
@example(" trailing. ")
def test_a_file_name_is_taken_by_every_system(text: str) -> None:
    name = safe_name(text)
    assert re.fullmatch(r"[A-Za-z0-9_.-]+", name)
    assert not name.endswith((".", " "))
    assert name not in (".", "..")
    assert not WINDOWS.fullmatch(name)
