"""An isolated NNX call is the real one, to the last bit, with all that it needs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.capture.nnx_twins import LAYERS, WIDTH, batch, rows, transformed
from tests.capture.same import assert_same
from theseus_track.capture import isolate


class Count(nnx.Variable[jax.Array]):
    """A counter."""


class Restless(nnx.Module):
    """A layer with all kinds of state: dropout, BatchNorm, a stream and a counter."""

    def __init__(self, drop, rngs):
        self.dense = nnx.Linear(WIDTH, WIDTH, rngs=rngs)
        self.norm = nnx.BatchNorm(WIDTH, rngs=rngs)
        self.drop = drop
        self.noise = nnx.Rngs(noise=3)
        self.count = Count(jnp.zeros((), jnp.int32))

    def __call__(self, x, scale=2.0):
        self.count[...] += 1
        x = self.drop(self.norm(self.dense(x) * scale))
        return x + jax.random.normal(self.noise.noise(), x.shape)


class Model(nnx.Module):
    """Calls a shared layer, and a dropout of that layer, several times."""

    def __init__(self, rngs):
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.rest = Restless(self.drop, rngs)

    def __call__(self, x):
        x = self.rest(self.drop(x), scale=3.0)
        return self.rest(self.drop(x))


@pytest.mark.slow  # Eagerly, layer by layer, and compiled.
@pytest.mark.parametrize("compiled", [False, True])
def test_every_call_is_made_again_to_the_last_bit(compiled):
    model = Model(nnx.Rngs(0))

    def forward(model, x):
        return model(x)

    fn = nnx.jit(forward) if compiled else forward
    untouched = jax.tree.map(jnp.copy, nnx.to_pure_dict(nnx.state(model)))

    calls = isolate(fn, "rest")(model, batch())

    assert_same(nnx.to_pure_dict(nnx.state(model)), untouched)
    assert [call.path for call in calls] == ["rest", "rest#1"]
    assert [int(call.state["count"]) for call in calls] == [0, 1]
    again = jax.jit(lambda call: call.run()) if compiled else lambda call: call.run()
    for call in calls:
        for _ in range(2):
            output, state = again(call)
            assert_same(output, call.output)
            assert_same(state, call.state_after)
    # More outputs may change a fusion of the compiled program.
    np.testing.assert_allclose(fn(model, batch()), calls[-1].output, atol=1e-6)


@pytest.mark.parametrize("name", ["remat", "scan", "lax.scan of merge"])
def test_under_transformations_each_layer_is_a_call(name):
    scanned = "scan" in name
    paths = ["blocks/attn"] if scanned else [f"blocks/{i}/attn" for i in range(LAYERS)]

    found = [
        isolate(lambda model, x: model(x), path)(transformed(name), batch())
        for path in paths
    ]

    for call, row in zip(found[0] if scanned else found, rows(), strict=True):
        # By hand in numpy; and alone, where XLA may round differently.
        np.testing.assert_allclose(call.output, row["y"], atol=1e-6)
        np.testing.assert_allclose(call(), row["y"], atol=1e-6)
    if scanned:
        assert [c.path for c in found[0]] == [f"blocks[{i}]/attn" for i in range(3)]


def test_gradient_vmap_and_other_inputs():
    model = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    x = jnp.ones((1, 3))
    call = isolate(lambda model, x: model(x), "")(model, x)

    gradient = jax.grad(lambda params: call.replace(params=params)().sum())(call.params)
    rows = jax.vmap(lambda x: call(inputs=x))(jnp.stack([x, 2 * x]))

    assert_same(gradient, {"bias": jnp.ones(2), "kernel": jnp.ones((3, 2))})
    np.testing.assert_allclose(rows[1], model(2 * x), atol=1e-6)
    assert_same(call.layer(x), call.output)


def test_streams_given_as_an_input_are_frozen_too():
    class Noisy(nnx.Module):
        def __call__(self, x, *, rngs):
            return x + jax.random.normal(rngs.noise(), x.shape)

    rngs = nnx.Rngs(noise=0)
    rngs.noise()

    call = isolate(lambda model, x, rngs: model(x, rngs=rngs), "")(
        Noisy(), batch(), rngs
    )

    for _ in range(2):
        assert_same(call(), call.output)
    assert_same(call.output, Noisy()(batch(), rngs=rngs))
