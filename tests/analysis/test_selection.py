"""The ready-made selections choose what they say, and hash by what they hold."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest

from theseus_track.analysis import (
    AnalysisBase,
    Selector,
    every,
    first,
    glob,
    instrument,
    last,
    measure_hash,
    nth,
)
from theseus_track.errors import BadInput

PATHS = ["blocks_0/attn", "blocks_0/mlp", "blocks_1/attn", "blocks_1/attn#1", "head"]


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        (first, "blocks_0/attn"),
        (last, "head"),
        (nth(1), "blocks_0/mlp"),
        (nth(-2), "blocks_1/attn#1"),
        (every(1), PATHS),
        (every(2), ["blocks_0/attn", "blocks_1/attn", "head"]),
        (glob("blocks_*/attn"), ["blocks_0/attn", "blocks_1/attn"]),
        (glob("blocks_?/attn*"), ["blocks_0/attn", "blocks_1/attn", "blocks_1/attn#1"]),
        (glob("*"), ["head"]),
        (glob("**"), PATHS),
        (glob("**/mlp"), ["blocks_0/mlp"]),
        (glob("**/head"), ["head"]),
    ],
)
def test_what_is_chosen(selector: Selector, chosen: object) -> None:
    assert selector(list(PATHS)) == chosen


@pytest.mark.parametrize(
    ("pattern", "chosen"),
    [
        ("blocks[3]/*", ["blocks[3]/attn", "blocks[3]/attn:scores#1"]),
        ("**/attn", ["blocks/attn"]),
        ("blocks[1:3]/attn", ["blocks[1:3]/attn"]),
        ("blocks/attn[0]:*", ["blocks/attn[0]:scores#1"]),
    ],
)
def test_layers_in_a_pattern(pattern: str, chosen: list[str]) -> None:
    assert glob(pattern)(["blocks/attn", "blocks/attn:scores#1"]) == chosen


def test_other_characters_of_a_pattern_are_themselves() -> None:
    assert glob("a.b+")(["a.b+", "axbb"]) == ["a.b+"]


@pytest.mark.parametrize(
    ("selector", "named"),
    [
        (nth(9), "-5 to 4"),
        (nth(-6), "-5 to 4"),
        (glob("blocks_*/at"), "blocks_0/attn"),
    ],
)
def test_what_fits_nothing_says_what_there_is(selector: Selector, named: str) -> None:
    with pytest.raises(BadInput) as caught:
        selector(list(PATHS))
    assert named in str(caught.value)
    assert repr(selector) in str(caught.value)


def test_every_needs_a_step() -> None:
    with pytest.raises(BadInput, match="0"):
        every(0)


def test_they_are_shown_as_they_are_written() -> None:
    shown = [repr(one) for one in (first, last, nth(3), every(2), glob("a/*"))]
    assert shown == ["first", "last", "nth(3)", "every(2)", "glob('a/*')"]


def _looking(selector: Selector) -> AnalysisBase:
    class Look(AnalysisBase):
        TARGET = nn.Dense
        select = selector

        def analyze(self, layer: Any, inputs: Any) -> Any:
            return inputs.output

    return Look()


def test_the_measure_hash_is_of_what_they_hold() -> None:
    one, same, other = (_looking(glob(text)) for text in ("a/*", "a/*", "b/*"))
    assert measure_hash(one) == measure_hash(same) != measure_hash(other)
    hashes = {measure_hash(_looking(one)) for one in (first, last, nth(2), every(2))}
    assert len(hashes) == 4


def test_as_the_select_of_an_analysis() -> None:
    model = nn.Sequential([nn.Dense(3), nn.Dense(2)])
    x = jnp.ones((1, 4))
    variables = model.init(jax.random.key(0), x)
    for selector, paths in [(last, ("layers_1",)), (glob("*_0"), ("layers_0",))]:
        step = instrument(model.apply, [_looking(selector)], strict=True)
        assert step(variables, x)[1].paths("look") == paths
