"""TOGETHER: one `analyze` of all selected calls, after the forward."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.capture import nnx_twins, twins
from theseus_track.analysis import AnalysisBase, instrument
from theseus_track.errors import PlanError


class Layer(nn.Module):
    """A layer with a dropout mask, batch statistics and a submodule."""

    @nn.compact
    def __call__(self, x, *, scale=2.0):
        x = nn.Dense(4, name="dense")(x) * scale
        x = nn.BatchNorm(use_running_average=False)(x)
        return nn.Dropout(0.5, deterministic=False)(x)


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        shared = Layer(name="shared")
        x = nn.remat(Layer)(name="first")(shared(x))
        return shared(x, scale=3.0)


class NnxLayer(nnx.Module):
    def __init__(self, rngs):
        self.dense = nnx.Linear(4, 4, rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x, scale=2.0):
        return self.drop(self.norm(self.dense(x) * scale))


class NnxNet(nnx.Module):
    def __init__(self, rngs):
        self.shared, self.first = NnxLayer(rngs), NnxLayer(rngs)

    def __call__(self, x):
        x = nnx.remat(NnxLayer.__call__)(self.first, self.shared(x))
        return self.shared(x, scale=3.0)


KEY = jax.random.key(2)
TARGETS = (Layer, NnxLayer, twins.Attn, nnx_twins.Attn)


def looked(layer, inputs):
    """Everything that an analysis may do with a view, twice over."""
    again = layer(inputs.x, scale=inputs.scale)
    return {
        "x": inputs.x,
        "y": inputs.output,
        "again": again,
        "twice": layer(inputs.x, scale=inputs.scale) - again,
        "part": layer.dense(inputs.x) if hasattr(layer, "dense") else 0.0,
    }


class Apart(AnalysisBase):
    TARGET = TARGETS

    def select(self, paths):
        return paths

    def analyze(self, layer, inputs):
        return looked(layer, inputs)


class All(AnalysisBase):
    TARGET = TARGETS
    TOGETHER = True

    def select(self, paths):
        return paths

    def analyze(self, layers, inputs):
        return [looked(*pair) for pair in zip(layers, inputs, strict=True)]


class Gram(All):
    """One number for each pair of calls, which no call alone can give."""

    def analyze(self, layers, inputs):
        assert len(layers) == len(inputs)
        outputs = jnp.stack([one.output.ravel() for one in inputs])
        return outputs @ outputs.T

    def combine(self, values):
        return {"gram": values}

    def merge(self, a, b):
        return jax.tree.map(jnp.add, a, b)


@functools.cache
def linen_step():
    model, x = Net(), jax.random.normal(jax.random.key(0), (3, 4))
    variables = jax.jit(model.init)({"params": jax.random.key(1), "dropout": KEY}, x)

    @jax.jit
    def step(variables, x):
        out, state = model.apply(
            variables, x, rngs={"dropout": KEY}, mutable=["batch_stats"]
        )
        return (out**2).mean(), state

    return step, (variables, x)


def nnx_step():
    x = jax.random.normal(jax.random.key(0), (3, 4))
    return nnx.jit(lambda model, x: (model(x) ** 2).mean()), (NnxNet(nnx.Rngs(0)), x)


@pytest.mark.slow  # compiles one program in each framework
@pytest.mark.parametrize("make", [linen_step, nnx_step])
def test_it_sees_what_each_call_alone_sees(make):
    step, args = make()
    instrumented = instrument(step, [Apart, All, Gram], strict=True)

    _, values = instrumented(*args)

    apart, whole = values["apart"], values["all"]
    assert list(apart) == ["shared", "first", "shared#1"]
    assert values.paths("all") == values.paths("gram") == tuple(apart)
    for one, other in zip(apart.values(), whole, strict=True):
        # Two computations of one number may be fused differently.
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), one, other
        )
        assert not np.any(other["twice"])
        np.testing.assert_allclose(other["again"], other["y"], atol=1e-6)
    outputs = np.stack([np.ravel(one["y"]) for one in apart.values()])
    np.testing.assert_allclose(values["gram"]["gram"], outputs @ outputs.T, rtol=1e-5)
    doubled = values.merge(values)["gram"]["gram"]
    np.testing.assert_array_equal(doubled, 2 * values["gram"]["gram"])


def test_the_plan_says_what_is_held():
    step, args = linen_step()
    plan = instrument(step, [Gram, Apart], only="gram").plan(*args)
    (planned,) = plan.analyses
    assert planned.leaves == {"gram": ((3, 3), "float32")}
    assert planned.bytes == 3 * 3 * 4
    assert planned.held == 3 * 2 * (3 * 4) * 4  # three calls, x and output
    assert "288 bytes of inputs held" in str(plan)


@pytest.mark.slow  # compiles a vmapped program
def test_under_vmap_it_looks_at_each_example():
    model = nn.Sequential([twins.Attn(), twins.Attn()])
    x = jax.random.normal(jax.random.key(0), (5, twins.WIDTH))
    variables = jax.jit(model.init)(jax.random.key(1), x[0])

    def step(variables, x):
        return jax.vmap(lambda row: model.apply(variables, row))(x)

    _, values = instrument(jax.jit(step), [Gram, Apart], strict=True)(variables, x)

    assert values["gram"]["gram"].shape == (5, 2, 2)
    outputs = np.stack([one["y"] for one in values["apart"].values()], axis=1)
    np.testing.assert_allclose(
        values["gram"]["gram"], outputs @ outputs.transpose(0, 2, 1), rtol=1e-5
    )


class Small(Gram):
    MAX_BYTES = 300  # less than the inputs and the value weigh together


class Tiny(Gram):
    MAX_BYTES = 100  # less than the inputs weigh


def test_what_is_too_heavy_is_a_fault():
    step, args = linen_step()
    with pytest.raises(PlanError) as caught:
        instrument(step, [Gram, Small, Tiny]).plan(*args)
    text = str(caught.value)
    assert "2 of 3" in text
    for words in ("'shared#1' (Layer)", "288 bytes", "allows 100", "324", "allows 300"):
        assert words in text


@pytest.mark.slow  # initialises a scanned model
@pytest.mark.parametrize("framework", ["linen", "nnx"])
def test_it_is_refused_in_a_loop(framework):
    if framework == "linen":
        model, variables = twins.transformed("scan")
        step, args = model.apply, (variables, twins.batch())
    else:
        model = nnx_twins.transformed("scan")
        step, args = type(model).__call__, (model, nnx_twins.batch())
    out, values = instrument(step, [Gram])(*args)
    message = values.faults["gram"].message
    for words in ("attn'", "(Attn)", "scan of 3 iterations", "TOGETHER"):
        assert words in message
    np.testing.assert_array_equal(out, step(*args))


def test_it_is_refused_in_a_branch():
    model = twins.Attn()
    x = jnp.ones((1, twins.WIDTH))
    variables = model.init(jax.random.key(0), x)

    def step(variables, x):
        return jax.lax.cond(x.sum() > 0, lambda: model.apply(variables, x), lambda: x)

    with pytest.raises(PlanError, match="a branch or a while loop"):
        instrument(step, [Gram]).plan(variables, x)
