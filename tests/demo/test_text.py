"""The demo's text: characters to codes and back, and its entropy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theseus_track.demo import Text, load_text
from theseus_track.errors import BadInput


@given(st.text(alphabet="abc d\n", min_size=1))
def test_what_is_encoded_decodes_to_itself(text: str) -> None:
    coded = Text.of("abc d\n" + text)
    assert coded.decode(coded.encode(text)) == text


def test_the_splits_are_the_text_in_order() -> None:
    text = Text.of("abcdefghij")
    assert text.decode(text.split("train")) == "abcdefghi"
    assert text.decode(text.split("val")) == "j"


def test_the_unigram_entropy_is_that_of_the_frequencies() -> None:
    assert Text.of("ab" * 50).unigram_entropy == pytest.approx(math.log(2))
    assert Text.of("a" * 9).unigram_entropy == 0.0
    biased = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert Text.of("aaab" * 25).unigram_entropy == pytest.approx(biased)


def test_the_text_is_long_english() -> None:
    text = load_text()
    assert len(text.train) > 300_000
    assert 3.0 < text.unigram_entropy < 3.6
    assert " the " in text.decode(text.val[:5000])
    assert np.unique(text.train).size <= len(text.alphabet) < 200


def test_unknown_characters_and_splits_are_named() -> None:
    text = Text.of("abc")
    with pytest.raises(BadInput, match="'xz'"):
        text.encode("azbx")
    with pytest.raises(BadInput, match=r"'test'.*'train'"):
        text.split("test")
