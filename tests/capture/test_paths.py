"""Every path has one text, and every text in the grammar one path."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theseus_track.capture import Path
from theseus_track.errors import BadInput

name = st.text(min_size=1)
paths = st.builds(
    Path,
    names=st.lists(name, max_size=4).map(tuple),
    method=st.just("__call__") | name,
    call=st.integers(min_value=0, max_value=10**6),
)


@settings(deadline=None)
@given(paths)
def test_text_and_back(path):
    assert Path.parse(str(path)) == path


@settings(deadline=None)
@given(paths, paths)
def test_different_paths_have_different_texts(left, right):
    assert (str(left) == str(right)) == (left == right)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", Path()),
        ("blocks_0/attn", Path(("blocks_0", "attn"))),
        ("a/b#1", Path(("a", "b"), call=1)),
        ("a/b:encode", Path(("a", "b"), "encode")),
        ("a/b:encode#2", Path(("a", "b"), "encode", 2)),
        ("#1", Path(call=1)),
        (":decode", Path((), "decode")),
        ("odd%2Fname", Path(("odd/name",))),
    ],
)
def test_the_grammar(text, path):
    assert Path.parse(text) == path
    assert str(path) == text


def test_the_first_call_needs_no_number():
    assert Path.parse("a#0") == Path.parse("a") == Path.parse("a:__call__")


@pytest.mark.parametrize("text", ["/a", "a/", "a//b", "a:", "a#", "a#x", "a#-1", "a[3"])
def test_what_is_not_in_the_grammar(text):
    with pytest.raises(BadInput) as caught:
        Path.parse(text)
    assert repr(text) in str(caught.value)
    assert "blocks_0/attn" in str(caught.value)


@pytest.mark.parametrize("wrong", [{"names": ("",)}, {"method": ""}, {"call": -1}])
def test_paths_without_a_text_are_refused(wrong):
    with pytest.raises(BadInput):
        Path(**wrong)


def test_base_and_numbered():
    path = Path.parse("a:f#3")
    assert str(path.base) == "a:f"
    assert path.base.numbered(3) == path
