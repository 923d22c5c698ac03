"""Gradients at a call agree with nudging what the call returns."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.capture.same import assert_same
from tests.capture.test_rules import net
from tests.capture.twins import batch, plain, transformed
from theseus_track.capture import edit, grad_at, isolate, rules
from theseus_track.errors import UnreachedCall, UnsupportedProgram


def loss(variables, x):
    return (net()[0](variables, x) ** 2).sum()


@pytest.mark.parametrize("compiled", [False, True])
def test_activation_times_gradient_is_a_central_difference(compiled):
    _, variables, x = net()
    fn = jax.jit(loss) if compiled else loss
    output = isolate(fn, "a/out")(variables, x).output

    gradient = grad_at(fn, "a/out")(variables, x)

    step = 1e-2
    up, down = (
        edit(fn, {"a/out": rules.scale(1 + s)})(variables, x) for s in (step, -step)
    )
    # The loss is of fourth order in the step and float32: good to about 1e-3.
    expected = (up - down) / (2 * step)
    np.testing.assert_allclose((output * gradient).sum(), expected, rtol=2e-3)
    assert_same(fn(variables, x), fn(variables, x))


def test_with_respect_to_an_input():
    _, variables, x = net()

    gradient = grad_at(loss, "a", name="x")(variables, x)

    expected = jax.grad(loss, argnums=1)(variables, x)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)


def test_of_an_nnx_model_that_changes_its_state():
    model = nnx.Sequential(
        nnx.Linear(2, 3, rngs=nnx.Rngs(0)), nnx.BatchNorm(3, rngs=nnx.Rngs(1))
    )
    x = jnp.array([[1.0, 2.0], [3.0, -1.0]])

    def fn(model, x):
        return (model(x) ** 3).sum()

    before = jax.tree.map(jnp.copy, nnx.to_pure_dict(nnx.state(model)))
    gradient = grad_at(fn, "layers/1")(model, x)

    assert_same(nnx.to_pure_dict(nnx.state(model)), before)
    np.testing.assert_allclose(gradient, 3 * model(x) ** 2, rtol=1e-5)


def test_what_has_no_single_gradient_is_an_error():
    model, variables = transformed("scan")
    with pytest.raises(UnsupportedProgram, match="scan3"):
        grad_at(lambda v, x: model.apply(v, x).sum(), "blocks/block/attn")(
            variables, batch()
        )
    with pytest.raises(UnreachedCall, match=r"'nowhere'.*'blocks_0"):
        grad_at(lambda v, x: plain()[0].apply(v, x).sum(), "nowhere")(
            plain()[1], batch()
        )


def test_a_vmap_or_while_loop_around_it_is_all_right():
    model: Any = nn.Sequential([nn.Dense(2)])
    x = jnp.array([[1.0, 2.0], [3.0, -1.0]])
    variables = model.init(jax.random.key(0), x)
    one = grad_at(lambda row: (model.apply(variables, row) ** 2).sum(), "layers_0")
    expected = 2 * model.apply(variables, x)

    _, summed = jax.lax.while_loop(
        lambda carry: carry[0] < len(x),
        lambda carry: (carry[0] + 1, carry[1] + one(x[carry[0]])),
        (0, jnp.zeros(2)),
    )

    np.testing.assert_allclose(jax.vmap(one)(x), expected, rtol=1e-6)
    np.testing.assert_allclose(summed, expected.sum(axis=0), rtol=1e-6)


@pytest.mark.parametrize("name", [None, "x"])
def test_a_call_in_a_vmap_or_while_loop_is_refused_by_its_path(name):
    _, variables, x = net()

    def mapped(variables, x):
        return jax.vmap(lambda row: loss(variables, row[None]))(x).sum()

    def looped(variables, x):
        def body(carry):
            return carry[0] + 1, carry[1] + loss(variables, x)

        return jax.lax.while_loop(lambda carry: carry[0] < 2, body, (0, 0.0))[1]

    with pytest.raises(UnsupportedProgram, match="'a/out' runs in vmap2"):
        grad_at(mapped, "a/out", name="inputs" if name else None)(variables, x)
    with pytest.raises(UnsupportedProgram, match="'a' runs in a while loop"):
        grad_at(looped, "a", name=name)(variables, x)
