"""Linen under every transformation gives the values of its plainly written twin."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.capture.same import assert_near, assert_same
from tests.capture.twins import (
    LAYERS,
    SCANNED,
    UNROLLED,
    WIDTH,
    Attn,
    batch,
    plain,
    transformed,
)
from theseus_track.capture import Site, discover, watch


def analyze(layer, inputs):
    kernel = layer.variables["params"]["Dense_0"]["kernel"]
    return {
        "x": inputs.x,
        "y": inputs.output,
        "again": layer(inputs.x),
        "w": kernel.sum(),
    }


EVERY = {"attn": Site(target=Attn, select=list, analyze=analyze)}


@functools.cache
def twin_values():
    """Layer by layer, what Flax itself captures in the plain twin."""
    model, variables = plain()
    x, rows = batch(), []
    _, state = model.apply(variables, x, capture_intermediates=True)
    for i in range(LAYERS):
        inner = state["intermediates"][f"blocks_{i}"]
        y = inner["attn"]["__call__"][0]
        params = variables["params"][f"blocks_{i}"]["attn"]
        w = params["Dense_0"]["kernel"].sum()
        rows.append({"x": x, "y": y, "again": y, "w": w})
        x = inner["__call__"][0]
    return rows


def assert_twin(values, name):
    rows = twin_values()
    if name in SCANNED:
        assert list(values) == ["blocks/block/attn"]
        stacked = values["blocks/block/attn"]
        values = [
            jax.tree.map(lambda leaf, i=i: leaf[i], stacked) for i in range(LAYERS)
        ]
    else:
        assert list(values) == [f"blocks_{i}/attn" for i in range(LAYERS)]
        values = list(values.values())
    for actual, expected in zip(values, rows, strict=True):
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=2e-6), actual, expected
        )


@pytest.mark.parametrize("differentiate", [False, True])
@pytest.mark.parametrize("name", UNROLLED + SCANNED)
def test_values_are_those_of_the_plain_twin(name, differentiate):
    model, variables = transformed(name)

    def loss(variables, x):
        return (model.apply(variables, x) ** 2).sum()

    step = jax.jit(jax.value_and_grad(loss) if differentiate else loss)
    untouched = step(variables, batch())

    out, captures = watch(step, EVERY, strict=True)(variables, batch())

    assert_twin(captures["attn"].values, name)
    (assert_near if name in SCANNED else assert_same)(out, untouched)
    assert_same(step(variables, batch()), untouched)
    axes = (f"scan{LAYERS}",) if name in SCANNED else ()
    assert set(captures["attn"].axes.values()) == {axes}
    assert captures["attn"].valid == {}


@pytest.mark.parametrize("name", ["nn.jit", "scan of remat"])
def test_a_plain_function_around_a_warm_jit(name):
    model, variables = transformed(name)
    forward = jax.jit(model.apply)
    untouched = forward(variables, batch())

    def step(variables, x):
        return forward(variables, x).sum(), "text"

    watched = watch(step, EVERY, strict=True)
    for _ in range(2):
        (total, text), captures = watched(variables, batch())
        assert_twin(captures["attn"].values, name)
        assert text == "text"
        assert_same(total, untouched.sum())
    assert_same(forward(variables, batch()), untouched)


def test_a_jitted_class_called_on_several_instances_keeps_their_paths():
    model, variables = transformed("nn.jit")
    fn = jax.jit(model.apply)
    for function in (model.apply, fn):
        for _ in range(2):
            found = discover(function, variables, batch(), target=Attn)
            assert list(found) == [f"blocks_{i}/attn" for i in range(LAYERS)]


@pytest.mark.parametrize("name", ["nn.jit", "jit of remat"])
def test_one_instance_of_a_jitted_class(name):
    model, variables = transformed(name)
    site = Site(target=Attn, select=lambda paths: paths[1], analyze=analyze)

    _, captures = watch(model.apply, {"s": site}, strict=True)(variables, batch())

    value = captures["s"].values["blocks_1/attn"]
    np.testing.assert_allclose(value["y"], twin_values()[1]["y"], atol=2e-6)


class Mapped(nn.Module):
    @nn.compact
    def __call__(self, x):
        over = nn.vmap(
            Attn, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=1
        )
        return over(name="attn")(x)


def test_vmap_over_parameters():
    model = Mapped()
    x = jnp.arange(2.0 * 3 * WIDTH).reshape(2, 3, WIDTH)
    variables = jax.jit(model.init)(jax.random.key(0), x)

    out, captures = watch(jax.jit(model.apply), EVERY, strict=True)(variables, x)

    value = captures["attn"].values["attn"]
    np.testing.assert_array_equal(value["x"], np.moveaxis(np.asarray(x), 1, 0))
    np.testing.assert_array_equal(value["y"], out)
    kernels = variables["params"]["attn"]["Dense_0"]["kernel"]
    np.testing.assert_allclose(value["w"], kernels.sum((1, 2)), rtol=1e-6)
    assert captures["attn"].axes == {"attn": ("vmap3",)}


class Branching(nn.Module):
    @nn.compact
    def __call__(self, x, flag):
        a, b = Attn(name="a"), Attn(name="b")
        if self.is_initializing():
            return a(x) + b(x)
        return nn.cond(flag, lambda _, x: a(x), lambda _, x: b(x), self, x)


@pytest.mark.parametrize("flag", [True, False])
def test_cond_says_which_branch_was_taken(flag):
    model = Branching()
    variables = model.init(jax.random.key(0), batch(), True)

    out, captures = watch(jax.jit(model.apply), EVERY)(variables, batch(), flag)

    site = captures["attn"]
    assert {path: bool(valid) for path, valid in site.valid.items()} == {
        "a": flag,
        "b": not flag,
    }
    taken, other = ("a", "b") if flag else ("b", "a")
    np.testing.assert_array_equal(site.values[taken]["y"], out)
    np.testing.assert_array_equal(site.values[other]["y"], np.zeros_like(out))


class Looping(nn.Module):
    @nn.compact
    def __call__(self, x, times):
        attn = Attn(name="attn")
        attn(x)

        def proceed(_, carry):
            return carry[0] < times

        def body(_, carry):
            return carry[0] + 1, attn(carry[1])

        return nn.while_loop(proceed, body, self, (jnp.int32(0), x))[1]


@pytest.mark.parametrize("times", [0, 2])
def test_while_gives_the_last_iteration(times):
    model = Looping()
    variables = model.init(jax.random.key(0), batch(), 1)

    def step(variables, x, times):
        return model.apply(variables, x, times)

    out, captures = watch(step, EVERY)(variables, batch(), jnp.int32(times))

    site = captures["attn"]
    assert list(site.values) == ["attn", "attn#1"]
    assert set(site.valid) == {"attn#1"}
    assert bool(site.valid["attn#1"]) == (times > 0)
    if times:
        np.testing.assert_allclose(site.values["attn#1"]["y"], out, rtol=1e-6)


class Recurrent(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.RNN(nn.LSTMCell(5), name="rnn")(x)


@pytest.mark.slow  # Compiles the initialisation and the run of an LSTM.
def test_rnn_stacks_over_time():
    model = Recurrent()
    x = jnp.arange(2.0 * 3 * WIDTH).reshape(2, 3, WIDTH)
    variables = jax.jit(model.init)(jax.random.key(0), x)
    site = Site(
        target=nn.LSTMCell, select=list, analyze=lambda _, inputs: inputs.output[1]
    )

    out, captures = watch(jax.jit(model.apply), {"cell": site}, strict=True)(
        variables, x
    )

    (value,) = captures["cell"].values.values()
    np.testing.assert_allclose(value, np.moveaxis(np.asarray(out), 1, 0), atol=1e-6)
    assert list(captures["cell"].axes.values()) == [("scan3",)]


def test_a_model_in_loops_of_plain_jax():
    model, variables = plain()

    def step(variables, x):
        def micro(total, rows):
            return total + model.apply(variables, rows).sum(), None

        return jax.lax.scan(jax.checkpoint(micro), jnp.float32(0), x)[0]

    x = jnp.stack([batch(), 2 * batch()])
    _, captures = watch(jax.jit(jax.value_and_grad(step)), EVERY)(variables, x)

    site = captures["attn"]
    assert set(site.axes.values()) == {("scan2",)}
    np.testing.assert_array_equal(site.values["blocks_0/attn"]["x"], x)
