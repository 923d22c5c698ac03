"""Edited calls return what the rules say; the function itself stays as it is."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.capture.same import assert_same
from tests.capture.twins import LAYERS, Attn, batch, plain, transformed
from theseus_track.capture import Site, edit, watch
from theseus_track.errors import BadInput, UnreachedCall


def zero(*call):
    return 0 * call[-1]


def ablated_by_hand(variables, *paths):
    """Zero the last layer before the tanh, which makes the output of Attn zero."""
    params = jax.tree.map(lambda leaf: leaf, variables)["params"]
    for path in paths:
        attn = params[path]["attn"]
        params = {
            **params,
            path: {"attn": jax.tree.map(jnp.zeros_like, attn)},
        }
    return {"params": params}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ["plain", "remat", "nn.jit"])
def test_ablation_equals_zeroed_weights(name, compiled):
    model, variables = transformed(name)
    fn = jax.jit(model.apply) if compiled else model.apply
    untouched = fn(variables, batch())

    edited = edit(fn, {"blocks_1/attn": zero})

    expected = fn(ablated_by_hand(variables, "blocks_1"), batch())
    for _ in range(2):
        np.testing.assert_allclose(edited(variables, batch()), expected, atol=1e-6)
    assert_same(fn(variables, batch()), untouched)


def test_all_layers_of_a_scan_are_edited():
    model, variables = transformed("scan")

    out = edit(jax.jit(model.apply), {"blocks/block/attn": zero})(variables, batch())

    assert_same(out, batch())


def test_a_rule_sees_layer_inputs_and_output():
    model, variables = plain()

    def rule(layer, inputs, output):
        return layer(inputs.x, scale=2 * inputs.scale) - output

    edited = edit(model.apply, {"blocks_0/attn": rule, "blocks_2/attn": zero})

    x, attn = batch(), Attn()
    weights = [variables["params"][f"blocks_{i}"]["attn"] for i in range(LAYERS)]
    first = [attn.apply({"params": weights[0]}, x, scale=s) for s in (4.0, 2.0)]
    x = x + first[0] - first[1]
    x = x + attn.apply({"params": weights[1]}, x)
    np.testing.assert_allclose(edited(variables, batch()), x, atol=1e-6)


class Shared(nn.Module):
    @nn.compact
    def __call__(self, x):
        attn = Attn(name="attn")
        return [attn(x), attn(x), attn(x)]


@pytest.mark.slow  # Eagerly, an edit of one call of several traces everything anew.
@pytest.mark.parametrize("compiled", [False, True])
def test_one_of_several_calls_is_edited(compiled):
    model = Shared()
    variables = jax.jit(model.init)(jax.random.key(0), batch())
    fn = jax.jit(model.apply) if compiled else model.apply

    for number in range(3):
        path = f"attn#{number}"
        edited = edit(fn, {path: zero})
        for _ in range(2):
            out = edited(variables, batch())
            assert [bool((y == 0).all()) for y in out] == [
                i == number for i in range(3)
            ]


def test_edits_compose_with_gradients_and_other_edits():
    model, variables = plain()
    once = edit(model.apply, {"blocks_0/attn": zero})
    twice = edit(once, {"blocks_1/attn": zero})

    def loss(fn):
        return jax.grad(lambda v: (fn(v, batch()) ** 2).sum())

    gradient = loss(twice)(variables)["params"]

    assert not np.any(gradient["blocks_0"]["attn"]["Dense_0"]["kernel"])
    assert not np.any(gradient["blocks_1"]["attn"]["Dense_0"]["kernel"])
    assert np.any(gradient["blocks_2"]["attn"]["Dense_0"]["kernel"])


@pytest.mark.parametrize("compiled", [False, True])
def test_a_watched_edit_shows_what_the_edit_made(compiled):
    model, variables = plain()
    fn = jax.jit(model.apply) if compiled else model.apply
    site = Site(target=Attn, select=list, analyze=lambda _, inputs: inputs.output)

    _, captures = watch(edit(fn, {"blocks_1/attn": zero}), {"y": site}, strict=True)(
        variables, batch()
    )

    zeros = {path: not np.any(y) for path, y in captures["y"].values.items()}
    assert zeros == {f"blocks_{i}/attn": i == 1 for i in range(LAYERS)}


def test_an_unknown_call_is_an_error_that_lists_those_there_are():
    model, variables = plain()
    with pytest.raises(UnreachedCall, match=r"'blocks_7/attn'.*'blocks_0/attn'"):
        edit(model.apply, {"blocks_7/attn": zero})(variables, batch())
    with pytest.raises(BadInput, match="no path"):
        edit(model.apply, {"a[": zero})


@pytest.mark.parametrize(
    "wrong", [lambda *call: call[-1][0], lambda *_: None, lambda *_: 1.0]
)
def test_a_rule_must_return_what_the_call_returns(wrong):
    model, variables = plain()
    with pytest.raises(BadInput, match=r"'blocks_0/attn' \(Attn\).*float32\[2, 4\]"):
        edit(model.apply, {"blocks_0/attn": wrong})(variables, batch())
