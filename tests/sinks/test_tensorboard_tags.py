from typing import Any, TypeAlias
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from theseus_track.sinks.tensorboard.tags import (
    figure_tag,
    leaf_tag,
    metric_tag,
    table_tag,
)

Thing: TypeAlias = tuple[Any, ...]

texts = st.text(
    st.one_of(
        st.sampled_from("ab./% :_"), st.characters(codec=None, exclude_categories=())
    ),
    min_size=1,
    max_size=6,
)
parts = st.one_of(st.just(""), texts)
# What is shown: a figure, the text of a JSON value, one of its numbers.
things = st.one_of(
    st.tuples(st.just("figure"), texts, parts),
    st.tuples(st.just("table"), texts, parts),
    st.tuples(st.just("leaf"), texts, parts, st.lists(texts, min_size=1, max_size=2)),
)


def tag_of(thing: Thing) -> str:
    kind, name, part, *rest = thing
    if kind == "figure":
        return figure_tag(name, part)
    return table_tag(name, part) if kind == "table" else leaf_tag(name, part, *rest)


@given(things, things)
def test_two_things_never_have_one_tag(a: Thing, b: Thing) -> None:
    assert (tag_of(a) == tag_of(b)) == (a == b)


@given(st.text(max_size=8), st.text(max_size=8))
def test_two_metrics_never_have_one_tag(a: str, b: str) -> None:
    assert (metric_tag(a) == metric_tag(b)) == (a == b)


@given(texts, texts)
def test_the_pieces_of_a_tag_can_be_read_back(name: str, part: str) -> None:
    pieces = figure_tag(name, part).split(".", 1)
    assert [unquote(p, errors="surrogatepass") for p in pieces] == [name, part]


@given(things)
def test_every_tag_survives_its_encoding(thing: Thing) -> None:
    assert tag_of(thing).encode().decode() == tag_of(thing) != ""


def test_ordinary_names_stay_as_they_are() -> None:
    assert figure_tag("attn_entropy-2", "") == "attn_entropy-2"
    assert figure_tag("attn", "head 3") == "attn.head 3"
    assert table_tag("attn", "") == "attn/table"
    assert leaf_tag("attn", "", ["mean"]) == "attn/mean"
    assert leaf_tag("attn", "", []) == "attn/value"
    assert metric_tag("train/loss.ema") == "train/loss.ema"
