"""NNX under every transformation gives the values of its twin computed by hand."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.capture.nnx_twins import (
    LAYERS,
    SCANNED,
    UNROLLED,
    WIDTH,
    Attn,
    batch,
    rows,
    transformed,
)
from tests.capture.same import assert_near, assert_same
from theseus_track.capture import Site, discover, watch


def analyze(layer, inputs):
    return {
        "x": inputs.x,
        "y": inputs.output,
        "again": layer(inputs.x),
        "w": layer.dense.kernel[...].sum(),
    }


EVERY = {"attn": Site(target=Attn, select=list, analyze=analyze)}


def assert_twin(values, name):
    if name in SCANNED:
        assert list(values) == ["blocks/attn"]
        stacked = values["blocks/attn"]
        values = [
            jax.tree.map(lambda leaf, i=i: leaf[i], stacked) for i in range(LAYERS)
        ]
    else:
        assert list(values) == [f"blocks/{i}/attn" for i in range(LAYERS)]
        values = list(values.values())
    for actual, expected in zip(values, rows(), strict=True):
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=2e-6), actual, expected
        )


def assert_fused(name, actual, expected):
    """Fail unless outputs are the same; in a scan, but for what fusion may change."""
    (assert_near if name in SCANNED else assert_same)(actual, expected)


def loss(model, x):
    return (model(x) ** 2).sum()


@pytest.mark.slow  # Compiles every transformation, with and without analyses.
@pytest.mark.parametrize("name", UNROLLED + SCANNED)
def test_values_are_those_computed_by_hand(name):
    model = transformed(name)
    step = nnx.jit(loss)
    untouched = step(model, batch())

    out, captures = watch(step, EVERY, strict=True)(model, batch())

    assert_twin(captures["attn"].values, name)
    assert_fused(name, out, untouched)
    assert_same(step(model, batch()), untouched)
    axes = (f"scan{LAYERS}",) if name in SCANNED else ()
    assert set(captures["attn"].axes.values()) == {axes}
    assert captures["attn"].valid == {}


@pytest.mark.slow  # Compiles every transformation and its gradient, twice.
@pytest.mark.parametrize("name", UNROLLED + SCANNED)
def test_values_are_the_same_where_the_model_is_differentiated(name):
    model = transformed(name)
    step = nnx.jit(nnx.value_and_grad(loss))
    untouched = step(model, batch())

    (value, grads), captures = watch(step, EVERY, strict=True)(model, batch())

    assert_twin(captures["attn"].values, name)
    assert_fused(
        name,
        (value, nnx.to_pure_dict(grads)),
        (untouched[0], nnx.to_pure_dict(untouched[1])),
    )


# NNX itself refuses its own transformations on a model that is closed over.
@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("plain", "closed over"),
        ("lax.scan of merge", "closed over"),
        ("scan of remat", "merged"),
        ("nnx.jit", "jax.jit"),
        ("scan of remat", "plain"),
    ],
)
def test_a_model_may_reach_the_function_in_any_way(name, form):
    model = transformed(name)
    graphdef, state = nnx.split(model)
    forms: dict[str, Any] = {
        "closed over": (jax.jit(lambda x: loss(model, x)), ()),
        "merged": (
            jax.jit(lambda state, x: loss(nnx.merge(graphdef, state), x)),
            (state,),
        ),
        "jax.jit": (jax.jit(loss), (model,)),
        "plain": (loss, (model,)),
    }
    step, given = forms[form]
    untouched = step(*given, batch())

    out, captures = watch(step, EVERY, strict=True)(*given, batch())

    assert_twin(captures["attn"].values, name)
    np.testing.assert_allclose(out, untouched, rtol=1e-6)


@pytest.mark.parametrize("name", ["nnx.jit", "scan of remat"])
def test_a_plain_function_around_a_warm_jit(name):
    model = transformed(name)
    forward = nnx.jit(loss)
    untouched = forward(model, batch())

    def step(model, x):
        return forward(model, x) + 1, "text"

    watched = watch(step, EVERY, strict=True)
    for _ in range(2):
        (total, text), captures = watched(model, batch())
        assert_twin(captures["attn"].values, name)
        assert text == "text"
        assert_fused(name, total, untouched + 1)
    assert_same(forward(model, batch()), untouched)


def test_one_instance_of_a_jitted_call():
    site = Site(target=Attn, select=lambda paths: paths[1], analyze=analyze)

    _, captures = watch(loss, {"s": site}, strict=True)(transformed("nnx.jit"), batch())

    np.testing.assert_allclose(
        captures["s"].values["blocks/1/attn"]["y"], rows()[1]["y"], atol=2e-6
    )


class Jitted(nnx.Module):
    def __init__(self, rngs):
        self.inner = Attn(rngs)

    @nnx.jit
    def __call__(self, x):
        return self.inner(x)


class Twice(nnx.Module):
    def __init__(self, rngs):
        self.a, self.b = Jitted(rngs), Jitted(rngs)

    def __call__(self, x):
        return self.b(self.a(x))


def test_a_jitted_method_called_on_two_instances_keeps_their_paths():
    found = discover(nnx.jit(loss), Twice(nnx.Rngs(0)), batch())

    assert list(found) == [
        "",
        "a",
        "a/inner",
        "a/inner/dense",
        *("b", "b/inner", "b/inner/dense"),
    ]


class Mapped(nnx.Module):
    def __init__(self, rngs):
        @nnx.split_rngs(splits=3)
        @nnx.vmap(in_axes=0, out_axes=0)
        def many(rngs):
            return Attn(rngs)

        self.attn = many(rngs)

    def __call__(self, x):
        return nnx.vmap(lambda attn, x: attn(x), in_axes=(0, 1))(self.attn, x)


@pytest.mark.slow  # Compiles the initialisation of the mapped layer too.
def test_vmap_over_parameters():
    model = Mapped(nnx.Rngs(0))
    x = jnp.arange(2.0 * 3 * WIDTH).reshape(2, 3, WIDTH)

    out, captures = watch(nnx.jit(Mapped.__call__), EVERY, strict=True)(model, x)

    value = captures["attn"].values["attn"]
    np.testing.assert_array_equal(value["x"], np.moveaxis(np.asarray(x), 1, 0))
    np.testing.assert_array_equal(value["y"], out)
    kernels = model.attn.dense.kernel[...]
    np.testing.assert_allclose(value["w"], kernels.sum((1, 2)), rtol=1e-6)
    assert captures["attn"].axes == {"attn": ("vmap3",)}


class Branching(nnx.Module):
    def __init__(self, rngs):
        self.a, self.b = Attn(rngs), Attn(rngs)

    def __call__(self, x, flag):
        def left(model, x):
            return model.a(x)

        def right(model, x):
            return model.b(x)

        return nnx.cond(flag, left, right, self, x)


@pytest.mark.parametrize("flag", [True, False])
def test_cond_says_which_branch_was_taken(flag):
    model = Branching(nnx.Rngs(0))

    out, captures = watch(nnx.jit(Branching.__call__), EVERY)(model, batch(), flag)

    site = captures["attn"]
    assert {path: bool(valid) for path, valid in site.valid.items()} == {
        "a": flag,
        "b": not flag,
    }
    np.testing.assert_array_equal(site.values["a" if flag else "b"]["y"], out)


def test_a_model_in_loops_of_plain_jax():
    model = transformed("plain")

    def step(model, x):
        def micro(total, rows):
            return total + model(rows).sum(), None

        return jax.lax.scan(jax.checkpoint(micro), jnp.float32(0), x)[0]

    x = jnp.stack([batch(), 2 * batch()])
    _, captures = watch(nnx.jit(nnx.value_and_grad(step)), EVERY)(model, x)

    site = captures["attn"]
    assert set(site.axes.values()) == {("scan2",)}
    np.testing.assert_array_equal(site.values["blocks/0/attn"]["x"], x)
