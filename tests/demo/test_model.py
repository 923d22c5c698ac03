"""The demo's GPT: causal, with weights that an analysis can recompute."""

from typing import Any

import jax
import numpy as np
import pytest

from theseus_track.capture import discover
from theseus_track.demo import GPT, SelfAttention


@pytest.fixture(scope="module")
def model() -> GPT:
    return GPT(vocabulary=11, context=8, layers=2, features=16, heads=2, dropout=0.5)


@pytest.fixture(scope="module")
def variables(model: GPT) -> Any:
    return model.init(jax.random.key(0), np.zeros((1, 8), np.int32))


def test_the_blocks_have_the_names_that_people_select(
    model: GPT, variables: Any
) -> None:
    tokens = np.zeros((1, 8), np.int32)
    calls = discover(model.apply, variables, tokens, target=SelfAttention)
    assert list(calls) == ["blocks_0/attn", "blocks_1/attn"]
    assert set(variables["params"]["blocks_0"]) == {
        "attn",
        "mlp",
        "norm_attn",
        "norm_mlp",
    }


def test_no_token_sees_a_later_one(model: GPT, variables: Any) -> None:
    tokens = np.arange(8, dtype=np.int32)[None]
    changed = tokens.copy()
    changed[0, 5] = 10
    one = np.asarray(model.apply(variables, tokens))
    two = np.asarray(model.apply(variables, changed))
    np.testing.assert_array_equal(one[0, :5], two[0, :5])
    assert not np.allclose(one[0, 5:], two[0, 5:])


def test_the_weights_are_those_of_the_call() -> None:
    layer = SelfAttention(features=16, heads=2, dropout=0.0)
    x = jax.random.normal(jax.random.key(1), (2, 5, 16))
    params = layer.init(jax.random.key(0), x)
    weights = np.asarray(layer.apply(params, x, method="weights"))
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-6)
    assert (np.triu(weights, k=1) == 0).all()

    # The layer's output, from its weights by plain numpy.
    leaves = jax.device_get(params["params"])
    qkv = np.einsum("btf,fshd->sbthd", x, leaves["qkv"]["kernel"])
    mixed = np.einsum("bhqk,bkhd->bqhd", weights, qkv[2])
    expected = np.einsum("bqhd,hdf->bqf", mixed, leaves["out"]["kernel"])
    expected = expected + leaves["out"]["bias"]
    output = np.asarray(layer.apply(params, x))
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)


def test_dropout_acts_in_training_only(model: GPT, variables: Any) -> None:
    tokens = np.zeros((1, 8), np.int32)
    rngs = {"dropout": jax.random.key(2)}
    plain = np.asarray(model.apply(variables, tokens))
    dropped = np.asarray(model.apply(variables, tokens, deterministic=False, rngs=rngs))
    assert not np.allclose(plain, dropped)
    np.testing.assert_array_equal(plain, np.asarray(model.apply(variables, tokens)))
