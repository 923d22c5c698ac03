"""Linen models that branch, loop and accumulate, also differentiated and warm."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.capture.same import assert_same
from tests.capture.test_linen_transforms import Branching
from tests.capture.twins import WIDTH, Attn, batch, plain
from theseus_track.capture import Site, watch


def look(layer, inputs):
    return {"x": inputs.x, "y": inputs.output, "again": layer(inputs.x)}


EVERY = {"attn": Site(target=Attn, select=list, analyze=look)}


def both_ways(forward, *calls):
    """Yield what is captured of a warm jitted function: alone, and in a gradient.

    Whatever the function itself returns is compared with what it returns unwatched.
    """
    warm = jax.jit(forward)
    untouched = [warm(*args) for args in calls]
    gradient = jax.jit(jax.value_and_grad(lambda *args: (warm(*args) ** 2).sum()))
    for fn in (warm, gradient):
        watched = watch(fn, EVERY, strict=True)
        for args in calls:
            out, captures = watched(*args)
            assert_same(out, fn(*args))
            yield captures["attn"]
    for args, out in zip(calls, untouched, strict=True):
        assert_same(warm(*args), out)


def check_twin(value, x, y, *, atol=1e-6):
    wanted = {"x": x, "y": y, "again": y}
    for name, expected in wanted.items():
        np.testing.assert_allclose(value[name], expected, atol=atol)


def by_hand(params, x):
    kernel, bias = (np.asarray(params["Dense_0"][name]) for name in ("kernel", "bias"))
    return np.tanh((np.asarray(x) @ kernel + bias) * 2)


class Choosing(nn.Module):
    """One of three layers."""

    @nn.compact
    def __call__(self, x, index):
        layers = [Attn(name=name) for name in "abc"]
        if self.is_initializing():
            return sum(layer(x) for layer in layers)
        branches = [lambda _, x, layer=layer: layer(x) for layer in layers]
        return nn.switch(index, branches, self, x)


@pytest.mark.slow  # Compiles a switch with and without analyses, twice.
def test_switch_says_which_branch_was_taken():
    model = Choosing()
    variables = model.init(jax.random.key(0), batch(), 0)
    outputs = {
        name: by_hand(variables["params"][name], batch()) for name in ("a", "b", "c")
    }
    calls = [(variables, batch(), jnp.int32(index)) for index in range(3)]
    sites = both_ways(model.apply, *calls)
    for taken, site in zip(2 * list(outputs), sites, strict=True):
        assert list(site.values) == list(outputs)
        for name, y in outputs.items():
            assert bool(site.valid[name]) == (name == taken)
            x, zero = np.asarray(batch()), name != taken
            check_twin(site.values[name], *((0 * x, 0 * y) if zero else (x, y)))


class Signed(nn.Module):
    """A layer whose parameters get only the signs of their gradients."""

    @nn.compact
    def __call__(self, x):
        def call(layer, x):
            return layer(x)

        def forward(layer, x):
            return nn.vjp(call, layer, x)

        def backward(pullback, tangent):
            params, x = pullback(tangent)
            return jax.tree.map(jnp.sign, params), x

        signed = nn.custom_vjp(call, forward_fn=forward, backward_fn=backward)
        return signed(Attn(name="attn"), x)


@pytest.mark.slow  # Compiles a custom derivative with and without analyses, twice.
def test_custom_vjp_keeps_its_rule_and_is_captured_once():
    model = Signed()
    variables = model.init(jax.random.key(0), batch())
    y = by_hand(variables["params"]["attn"], batch())
    for site in both_ways(model.apply, (variables, batch())):
        assert list(site.values) == ["attn"]
        check_twin(site.values["attn"], batch(), y)
        assert site.valid == {}


@pytest.mark.slow  # Compiles both branches with and without analyses, twice.
def test_a_condition_of_each_example_computes_both_branches():
    model = Branching()
    x, flags = jnp.stack([batch(), 2 * batch()]), jnp.asarray([True, False])
    variables = model.init(jax.random.key(0), batch(), True)
    mapped = jax.vmap(model.apply, in_axes=(None, 0, 0))

    for site in both_ways(mapped, (variables, x, flags)):
        assert set(site.values) == {"a", "b"}
        assert set(site.axes.values()) == {("vmap2",)}
        assert site.valid == {}
        for name, value in site.values.items():
            check_twin(value, x, by_hand(variables["params"][name], x))


class Repeated(nn.Module):
    """A layer three times, by a loop that only the program knows the length of."""

    @nn.compact
    def __call__(self, x):
        attn = Attn(name="attn")
        if self.is_initializing():
            return attn(x)
        return jax.lax.fori_loop(0, 3, lambda _, y: attn(y), x)


@pytest.mark.slow  # Compiles a loop with and without analyses, twice.
def test_a_loop_of_known_length_is_stacked():
    model = Repeated()
    variables = model.init(jax.random.key(0), batch())
    rows = [batch()]
    for _ in range(3):
        rows.append(by_hand(variables["params"]["attn"], rows[-1]))
    for site in both_ways(model.apply, (variables, batch())):
        assert site.axes["attn"] == ("scan3",)
        check_twin(site.values["attn"], np.stack(rows[:-1]), np.stack(rows[1:]))


class Recurrent(nn.Module):
    """A cell that is the target, over time."""

    @nn.compact
    def __call__(self, x):
        return nn.RNN(nn.SimpleCell(WIDTH), name="rnn")(x)


@pytest.mark.slow  # Compiles a recurrent layer with and without analyses, twice.
def test_rnn_in_a_gradient_and_warm():
    model, x = Recurrent(), jnp.arange(2.0 * 3 * WIDTH).reshape(2, 3, WIDTH) / 10
    variables = model.init(jax.random.key(0), x)
    site = Site(
        target=nn.SimpleCell, select=list, analyze=lambda _, inputs: inputs.output[1]
    )
    warm = jax.jit(model.apply)
    expected = np.moveaxis(np.asarray(warm(variables, x)), 1, 0)

    step = jax.jit(jax.value_and_grad(lambda v, x: warm(v, x).sum()))
    out, captures = watch(step, {"cell": site}, strict=True)(variables, x)

    assert_same(out, step(variables, x))
    ((path, value),) = captures["cell"].values.items()
    np.testing.assert_allclose(value, expected, atol=1e-6)
    assert captures["cell"].axes[path] == ("scan3",)


@pytest.mark.slow  # Compiles an accumulation of gradients, with and without analyses.
def test_gradients_accumulated_over_micro_batches():
    model, variables = plain()
    warm = jax.jit(lambda variables, x: (model.apply(variables, x) ** 2).sum())

    @jax.jit
    def step(variables, x):
        def micro(total, rows):
            value, grads = jax.value_and_grad(warm)(variables, rows)
            return jax.tree.map(jnp.add, total, grads), value

        return jax.lax.scan(micro, jax.tree.map(jnp.zeros_like, variables), x)

    x = jnp.stack([batch(), 2 * batch(), 3 * batch()])
    warm(variables, batch())
    out, captures = watch(step, EVERY, strict=True)(variables, x)

    assert_same(out, step(variables, x))
    site = captures["attn"]
    assert set(site.axes.values()) == {("scan3",)}
    first: Any = variables["params"]["blocks_0"]["attn"]
    check_twin(site.values["blocks_0/attn"], x, by_hand(first, x))
