"""The NNX twins: models that branch, loop and accumulate, differentiated and warm."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.capture.nnx_twins import WIDTH, Attn, batch, rows, transformed
from tests.capture.same import assert_same
from tests.capture.test_linen_control import check_twin, look
from theseus_track.capture import Site, watch

EVERY = {"attn": Site(target=Attn, select=list, analyze=look)}


class Layers(nnx.Module):
    """Layers, and how they are called."""

    def __init__(self, call, count=1):
        rngs = nnx.Rngs(0)
        self.layers = nnx.List([Attn(rngs) for _ in range(count)])
        self.call = call

    def __call__(self, *args):
        return self.call(self.layers, *args)


def pure(tree):
    return jax.tree.map(np.asarray, nnx.to_pure_dict(nnx.state(tree)))


def both_ways(model, *calls, differentiate=True):
    """Yield what is captured of a warm jitted function: alone, and in a gradient.

    Whatever the function itself returns is compared with what it returns unwatched.
    """
    warm: Any = nnx.jit(lambda model, *args: model(*args))
    untouched = [warm(model, *args) for args in calls]
    gradient = nnx.jit(
        nnx.value_and_grad(lambda model, *args: (warm(model, *args) ** 2).sum())
    )
    for fn in (warm, gradient) if differentiate else (warm,):
        watched = watch(fn, EVERY, strict=True)
        for args in calls:
            out, captures = watched(model, *args)
            assert_same(pure([out]), pure([fn(model, *args)]))
            yield captures["attn"]
    for args, out in zip(calls, untouched, strict=True):
        assert_same(warm(model, *args), out)


def by_hand(attn, x):
    kernel, bias = (np.asarray(p[...]) for p in (attn.dense.kernel, attn.dense.bias))
    return np.tanh((np.asarray(x) @ kernel + bias) * 2)


@pytest.mark.slow  # Compiles a switch with and without analyses, twice.
def test_switch_says_which_branch_was_taken():
    def choose(layers, x, index):
        branches = [lambda layers, x, i=i: layers[i](x) for i in range(3)]
        return nnx.switch(index, branches, layers, x)

    model = Layers(choose, 3)
    outputs = {
        f"layers/{i}": by_hand(layer, batch()) for i, layer in enumerate(model.layers)
    }
    sites = both_ways(model, *((batch(), jnp.int32(index)) for index in range(3)))
    for taken, site in zip(2 * list(outputs), sites, strict=True):
        assert list(site.values) == list(outputs)
        for name, y in outputs.items():
            assert bool(site.valid[name]) == (name == taken)
            x, zero = np.asarray(batch()), name != taken
            check_twin(site.values[name], *((0 * x, 0 * y) if zero else (x, y)))


@nnx.custom_vjp
def signed(layer, x):
    return layer(x)


def _forward(layer, x):
    graphdef, state = nnx.split(layer)
    return jax.vjp(lambda state, x: nnx.merge(graphdef, state, copy=True)(x), state, x)


def _backward(pullback, tangents):
    grads, x = pullback(tangents[1])
    return jax.tree.map(jnp.sign, grads), x


signed.defvjp(_forward, _backward)


@pytest.mark.slow  # Compiles a custom derivative with and without analyses, twice.
def test_custom_vjp_keeps_its_rule_and_is_captured_once():
    model = Layers(lambda layers, x: signed(layers[0], x))
    y = by_hand(model.layers[0], batch())
    for site in both_ways(model, (batch(),)):
        assert list(site.values) == ["layers/0"]
        check_twin(site.values["layers/0"], batch(), y)
        assert site.valid == {}


@pytest.mark.slow  # Compiles both branches with and without analyses, twice.
def test_a_condition_of_each_example_computes_both_branches():
    def branch(layers, x, flag):
        call = [lambda layers, x, i=i: layers[i](x) for i in (0, 1)]
        return nnx.cond(flag, *call, layers, x)

    model = Layers(
        nnx.vmap(branch, in_axes=(None, 0, 0)),
        2,
    )
    x, flags = jnp.stack([batch(), 2 * batch()]), jnp.asarray([True, False])
    for site in both_ways(model, (x, flags)):
        assert set(site.values) == {"layers/0", "layers/1"}
        assert set(site.axes.values()) == {("vmap2",)}
        assert site.valid == {}
        for layer, path in zip(model.layers, ("layers/0", "layers/1"), strict=True):
            check_twin(site.values[path], x, by_hand(layer, x))


@pytest.mark.slow  # Compiles two loops with and without analyses.
def test_loops_of_unknown_length_give_the_last_iteration_others_all():
    def times(layers, x, count):
        def proceed(carry):
            return carry[0] < count

        def body(carry):
            number, layers, x = carry
            return number + 1, layers, layers[0](x)

        x = nnx.while_loop(proceed, body, (jnp.int32(0), layers, x))[2]
        again = lambda _, carry: (carry[0], carry[0][1](carry[1]))  # noqa: E731
        return nnx.fori_loop(0, 3, again, (layers, x))[1]

    model = Layers(times, 2)
    states = [batch()]
    for _ in range(2):
        states.append(by_hand(model.layers[0], states[-1]))
    sites = both_ways(model, (batch(), 0), (batch(), 2), differentiate=False)
    for count, site in zip((0, 2), sites, strict=True):
        assert bool(site.valid["layers/0"]) == bool(count)
        if count:
            check_twin(site.values["layers/0"], *states[1:])
        rest = [states[count]]
        for _ in range(3):
            rest.append(by_hand(model.layers[1], rest[-1]))
        assert site.axes["layers/1"] == ("scan3",)
        check_twin(site.values["layers/1"], np.stack(rest[:-1]), np.stack(rest[1:]))


@pytest.mark.slow  # Compiles a recurrent layer with and without analyses.
def test_rnn_in_a_gradient_and_warm():
    model: Any = nnx.RNN(nnx.SimpleCell(WIDTH, WIDTH, rngs=nnx.Rngs(0)))
    x = jnp.arange(2.0 * 3 * WIDTH).reshape(2, 3, WIDTH) / 10
    site = Site(
        target=nnx.SimpleCell, select=list, analyze=lambda _, inputs: inputs.output[1]
    )
    warm: Any = nnx.jit(lambda model, x: model(x))
    expected = np.moveaxis(np.asarray(warm(model, x)), 1, 0)

    step: Any = nnx.jit(nnx.value_and_grad(lambda model, x: warm(model, x).sum()))
    out, captures = watch(step, {"cell": site}, strict=True)(model, x)

    assert_same(pure([out]), pure([step(model, x)]))
    ((path, value),) = captures["cell"].values.items()
    np.testing.assert_allclose(value, expected, atol=1e-6)
    assert captures["cell"].axes[path] == ("scan3",)


@pytest.mark.slow  # Compiles an accumulation of gradients, with and without analyses.
def test_gradients_accumulated_over_micro_batches():
    model = transformed("plain")
    warm: Any = nnx.jit(lambda model, x: (model(x) ** 2).sum())

    @nnx.jit
    def step(model, x):
        graphdef, state = nnx.split(model)

        def micro(total, rows):
            merged = nnx.merge(graphdef, state, copy=True)
            value, grads = nnx.value_and_grad(warm)(merged, rows)
            return jax.tree.map(jnp.add, total, grads), value

        return jax.lax.scan(micro, jax.tree.map(jnp.zeros_like, state), x)

    x = jnp.stack([batch(), 2 * batch(), 3 * batch()])
    warm(model, batch())
    out, captures = watch(step, EVERY, strict=True)(model, x)

    assert_same(pure([out]), pure([step(model, x)]))
    site = captures["attn"]
    assert set(site.axes.values()) == {("scan3",)}
    value = site.values["blocks/0/attn"]
    np.testing.assert_array_equal(value["x"], x)
    np.testing.assert_allclose(value["y"][0], rows()[0]["y"], atol=1e-6)
