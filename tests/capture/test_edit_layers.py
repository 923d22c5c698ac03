"""Edits of some layers of a scanned stack: these change, the others stay."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.capture import nnx_twins
from tests.capture.same import assert_same
from tests.capture.twins import LAYERS, WIDTH, Attn, batch, transformed
from theseus_track.capture import (
    Site,
    edit,
    grad_at,
    patches,
    rules,
    sweep,
    watch,
)
from theseus_track.errors import BadInput, UnreachedCall

ATTN = "blocks/block/attn"


def loss_of(name):
    model, variables = transformed(name)

    def loss(variables, x):
        return (model.apply(variables, x) ** 2).mean()

    return loss, variables


def layer(text):
    return f"blocks[{text}]/block/attn"


EDITS = [
    # An input; and the output of one layer twice.
    (
        {
            layer("0"): rules.add(0.5).on("x"),
            layer("1:3"): rules.scale(3.0),
            layer("2"): rules.add(1.0),
        },
        {
            "blocks_0/attn": rules.add(0.5).on("x"),
            "blocks_1/attn": rules.scale(3.0),
            "blocks_2/attn": lambda _layer, _inputs, y: 3 * y + 1,
        },
    ),
    # The layer itself is called.
    (
        {layer("2"): lambda module, inputs, y: module(2 * inputs.x) - y},
        {"blocks_2/attn": lambda module, inputs, y: module(2 * inputs.x) - y},
    ),
]


@pytest.mark.slow  # compiles a scan and its gradient for each
@pytest.mark.parametrize(
    ("name", "edits"), [("scan of remat", EDITS[0]), *(("scan", e) for e in EDITS)]
)
def test_layers_are_edited_as_in_the_unrolled_twin(name, edits):
    scanned, unrolled = edits
    loss, variables = loss_of(name)
    twin, apart = loss_of("plain")

    # The gradient is taken inside the edited function and around it.
    inside = edit(jax.jit(jax.value_and_grad(loss)), scanned)(variables, batch())
    around = jax.jit(jax.value_and_grad(edit(loss, scanned)))(variables, batch())

    expected = jax.value_and_grad(edit(twin, unrolled))(apart, batch())
    stacked = jax.tree.map(
        lambda *rows: jnp.stack(rows),
        *(expected[1]["params"][f"blocks_{i}"] for i in range(LAYERS)),
    )
    for value, grads in (inside, around):
        np.testing.assert_allclose(value, expected[0], rtol=1e-5)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5),
            grads["params"]["blocks"]["block"],
            stacked,
        )


@pytest.mark.slow  # compiles three programs
def test_the_other_layers_stay_to_the_last_bit():
    model, variables = transformed("scan")
    attn = Site(
        target=Attn, select=lambda paths: paths, analyze=lambda _, i: (i.x, i.output)
    )
    step = jax.jit(model.apply)

    # Watched around the edit: what the layers really do.
    edited = edit(step, {layer("1"): rules.zero})
    _, captures = watch(edited, {"attn": attn}, strict=True)(variables, batch())
    _, untouched = watch(step, {"attn": attn}, strict=True)(variables, batch())

    x, y = captures["attn"].values[ATTN]
    plain_x, plain_y = untouched["attn"].values[ATTN]
    assert_same(x[:2], plain_x[:2])
    assert_same(y[0], plain_y[0])
    # What comes in at layer 2 is what came in at layer 1: its block added nothing.
    assert_same(x[2], x[1])
    assert_same(step(variables, batch()), model_output(model, variables))
    changing_nothing = edit(step, {layer("1"): lambda _layer, _inputs, y: y})
    assert_same(changing_nothing(variables, batch()), step(variables, batch()))


def model_output(model, variables):
    return jax.jit(model.apply)(variables, batch())


@pytest.mark.slow  # traces and compiles a scan of NNX
def test_nnx_layers_too():
    model = nnx_twins.transformed("scan")
    step = type(model).__call__
    out = edit(step, {"blocks[1]/attn": rules.zero})(model, nnx_twins.batch())
    first, _, third = nnx_twins.weights()
    x = nnx_twins.batch()
    for kernel, bias in (first, third):
        x = x + np.tanh((x @ kernel + bias[None]) * 2)
    np.testing.assert_allclose(out, x, atol=1e-6)


@pytest.mark.slow  # compiles three grids of edits, and the twin's
def test_a_sweep_and_patches_and_a_gradient_by_layer():
    loss, variables = loss_of("scan")
    twin, apart = loss_of("plain")
    paths, names = [layer("0"), layer("2")], ["blocks_0/attn", "blocks_2/attn"]
    other = batch() + 1

    # What is there in a run on another batch, unit by unit.
    patched = sweep(loss, patches(loss, paths)(variables, other))(variables, batch())
    expected = sweep(twin, patches(twin, names)(apart, other))(apart, batch())
    assert patched.shape == (2, WIDTH)
    np.testing.assert_allclose(patched, expected, rtol=1e-5)

    gradient = jax.jit(grad_at(loss, paths[0]))(variables, batch())
    by_hand = jax.jit(grad_at(twin, names[0]))(apart, batch())
    np.testing.assert_allclose(gradient, by_hand, atol=1e-6)


@pytest.mark.parametrize(
    ("path", "error", "named"),
    [
        (layer("3"), BadInput, "3 layers, 0 to 2"),
        (layer("1:4"), BadInput, "asks for layer 3"),
        ("blocks/block[0]/attn", BadInput, "no scanned stack"),
        ("blocks[0]/block/att", UnreachedCall, ATTN),
    ],
)
def test_layers_that_there_are_not(path, error, named):
    model, variables = transformed("scan")
    with pytest.raises(error, match=named.replace("[", r"\[")):
        edit(model.apply, {path: rules.zero})(variables, batch())


class Twice(nn.Module):
    """A scanned layer that is called twice."""

    @nn.compact
    def __call__(self, x, _):
        layer = nn.Dense(WIDTH, name="dense")
        return layer(layer(x)), None


@pytest.mark.slow  # initialises and compiles a scan
def test_the_second_call_in_one_layer():
    stack = nn.scan(
        Twice, variable_axes={"params": 0}, split_rngs={"params": True}, length=2
    )
    model = nn.Sequential([stack()])
    x = batch()
    variables = model.init(jax.random.key(0), x, None)

    def apply(variables, x):
        return model.apply(variables, x, None)[0]

    second = {"layers_0[0]/dense#1": rules.zero, "layers_0[1]/dense": rules.add(1.0)}
    y = jax.jit(edit(apply, second))(variables, x)

    kernel = variables["params"]["layers_0"]["dense"]["kernel"][1]
    # The first layer writes zeros; the bias of the second is zero.
    np.testing.assert_allclose(y, jnp.ones_like(x) @ kernel, atol=1e-6)
