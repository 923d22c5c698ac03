"""Ready rules do what is done by hand, on outputs, inputs and parts of them."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.capture.same import assert_same
from theseus_track.capture import Site, edit, isolate, rules, watch
from theseus_track.errors import BadInput, TheseusError

HEADS, WIDTH = 2, 4


class Mix(nn.Module):
    """Two heads that write side by side, and a projection."""

    @nn.compact
    def __call__(self, x):
        heads = nn.tanh(nn.Dense(WIDTH, name="heads")(x))
        return x + nn.Dense(WIDTH, name="out")(heads)


class Net(nn.Module):
    """Two of them."""

    @nn.compact
    def __call__(self, x):
        return Mix(name="b")(Mix(name="a")(x))


@functools.cache
def net():
    x = jnp.linspace(-1, 1, 2 * 3 * WIDTH).reshape(2, 3, WIDTH)
    return Net().apply, jax.jit(Net().init)(jax.random.key(0), x), x


def test_zeroing_equals_removing_the_parameters_by_hand():
    fn, variables, x = net()
    params = variables["params"]
    removed = jax.tree.map(jnp.zeros_like, params["a"]["out"])
    by_hand = {"params": {**params, "a": {**params["a"], "out": removed}}}

    assert_same(edit(fn, {"a/out": rules.zero})(variables, x), fn(by_hand, x))


@pytest.mark.parametrize("head", [0, 1])
def test_one_head_among_those_side_by_side(head):
    fn, variables, x = net()
    out = variables["params"]["b"]["out"]
    rows = slice(2 * head, 2 * head + 2)
    params = {
        **variables["params"],
        "b": {
            **variables["params"]["b"],
            "out": {**out, "kernel": out["kernel"].at[rows].set(0)},
        },
    }

    rule = rules.zero.at(head, parts=HEADS).on("inputs")

    edited = edit(fn, {"b/out": rule})(variables, x)
    # A sum with zero rows and a sum without: the same but for the last bit.
    np.testing.assert_allclose(edited, fn({"params": params}, x), atol=1e-6)


def seen(rule, path="a/out"):
    """Return the output at a path, before and after an edit there."""
    fn, variables, x = net()
    before = isolate(fn, path)(variables, x).output
    site = Site(target=nn.Dense, select=lambda _: path, analyze=lambda _, i: i.output)
    _, found = watch(edit(fn, {path: rule}), {"y": site}, strict=True)(variables, x)
    return np.asarray(before), np.asarray(found["y"].values[path])


def test_each_ready_rule():
    vector = np.arange(WIDTH, dtype=np.float32)
    cases = {
        "mean": (rules.mean, lambda y: np.broadcast_to(y.mean((0, 1)), y.shape)),
        "replace": (rules.replace(vector), lambda y: np.broadcast_to(vector, y.shape)),
        "add": (rules.add(vector), lambda y: y + vector),
        "scale": (rules.scale(3), lambda y: y * 3),
    }
    for rule, by_hand in cases.values():
        before, after = seen(rule)
        np.testing.assert_allclose(after, by_hand(before), atol=1e-6)


@pytest.mark.parametrize(
    ("rule", "where"),
    [
        (rules.zero.at(1, axis=1), np.s_[:, 1]),
        (rules.zero.at([0, 2], axis=1), np.s_[:, [0, 2]]),
        (rules.zero.at(slice(1, None), axis=1), np.s_[:, 1:]),
        (rules.zero.at(np.array([True, False, False]), axis=1), np.s_[:, :1]),
        (rules.zero.at(2, axis=1).at(1, parts=HEADS), np.s_[:, 2, 2:]),
        (rules.zero.at(-1), np.s_[..., -1]),
    ],
)
def test_only_what_was_asked_for_changes(rule, where):
    before, after = seen(rule)
    expected = before.copy()
    expected[where] = 0
    assert_same(after, expected)


def test_a_soft_mask_goes_from_the_one_to_the_other():
    before, half = seen(rules.zero.at(jnp.full(WIDTH, 0.5)))
    np.testing.assert_allclose(half, before / 2, rtol=1e-6)
    assert_same(seen(rules.zero.at(jnp.zeros(WIDTH)))[1], before)


def test_an_edited_input_reaches_what_is_inside():
    fn, variables, x = net()

    edited = edit(fn, {"b": rules.zero.on("x")})

    assert_same(isolate(edited, "b/heads")(variables, x).inputs.inputs, 0 * x)
    assert_same(fn(variables, x), fn(variables, x))
    with pytest.raises(BadInput, match=r"'y'.*'x'"):
        edit(fn, {"b": rules.zero.on("y")})(variables, x)


def test_patching_everything_is_clean_and_nothing_is_corrupted():
    fn, variables, x = net()
    other = jnp.flip(x, 1)
    source = isolate(fn, "a")(variables, x)

    patched = edit(fn, {"a": rules.patch(source)})(variables, other)
    nothing = edit(fn, {"a": rules.patch(source).at([], axis=1)})(variables, other)
    given = edit(fn, {"a": rules.patch(source).on("x")})(variables, other)

    assert_same(patched, fn(variables, x))
    assert_same(nothing, fn(variables, other))
    assert_same(given, fn(variables, x))


def test_what_cannot_be_is_an_error():
    for rule, text in [
        (rules.zero.at(7, axis=1), "Element 7.*there are 3"),
        (rules.zero.at(np.ones(2, bool)), r"shape \(2,\).*4 elements"),
        (rules.zero.at(0, parts=3), "4 elements.*3 parts"),
        (rules.add([1.0, 2.0]), "same structure"),
    ]:
        with pytest.raises(TheseusError, match=text):
            seen(rule)


def test_nnx_outputs_and_inputs():
    model = nnx.Sequential(
        nnx.Linear(2, 3, rngs=nnx.Rngs(0)), nnx.Linear(3, 2, rngs=nnx.Rngs(1))
    )
    x = jnp.ones((1, 2))

    def fn(model, x):
        return model(x)

    assert_same(edit(fn, {"layers/1": rules.zero})(model, x), jnp.zeros((1, 2)))
    first = edit(fn, {"layers/1": rules.zero.at(0).on("inputs")})(model, x)
    by_hand = model.layers[1](model.layers[0](x).at[:, 0].set(0))
    np.testing.assert_allclose(first, by_hand, atol=1e-6)


class Twice(nn.Module):
    """Calls one layer twice."""

    @nn.compact
    def __call__(self, x):
        dense = nn.Dense(4, name="dense")
        return dense(x), dense(x)


def test_the_input_of_one_call_of_several_is_edited():
    x = net()[2]
    variables = Twice().init(jax.random.key(0), x)

    edited = edit(jax.jit(Twice().apply), {"dense#1": rules.zero.on("inputs")})

    first, second = edited(variables, x)
    assert np.any(first)
    assert_same(second, 0 * second)
