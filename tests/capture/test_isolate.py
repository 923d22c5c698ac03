"""An isolated call is the real one, to the last bit, with all that it needs."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.capture.same import assert_same
from tests.capture.twins import LAYERS, WIDTH, Attn, batch, plain, transformed
from theseus_track.capture import Path, edit, isolate
from theseus_track.capture.isolate import Isolator
from theseus_track.errors import BadInput, UnreachedCall


class Restless(nn.Module):
    """A layer with all kinds of state: dropout, BatchNorm, a stream and a counter."""

    @nn.compact
    def __call__(self, x, scale=2.0):
        count = self.variable("counts", "calls", lambda: jnp.zeros((), jnp.int32))
        count.value += 1
        x = nn.Dense(WIDTH)(x) * scale
        x = nn.BatchNorm(use_running_average=False)(x)
        x = nn.Dropout(0.5, deterministic=False)(x)
        return x + jax.random.normal(self.make_rng("noise"), x.shape)


class Tied(nn.Module):
    """A layer that uses an embedding and a dropout from elsewhere in the model."""

    embed: nn.Module
    drop: nn.Module

    @nn.compact
    def __call__(self, x):
        return self.embed.attend(self.drop(nn.Dense(WIDTH)(x)))


class Model(nn.Module):
    """Calls a shared layer three times, with draws of its own before."""

    def setup(self):
        self.embed = nn.Embed(5, WIDTH)
        self.drop = nn.Dropout(0.5, deterministic=False)
        self.rest = Restless()
        self.head = Tied(self.embed, self.drop)

    def __call__(self, ids):
        x = self.drop(self.embed(ids))
        x = self.rest(x) + self.rest(x, scale=3.0)
        x = self.rest(self.drop(x))
        return self.head(x)


def restless():
    model, ids = Model(), jnp.arange(6).reshape(2, 3) % 5
    rngs = {name: jax.random.key(i) for i, name in enumerate(("dropout", "noise"))}
    variables = jax.jit(model.init)({"params": jax.random.key(7), **rngs}, ids)

    def forward(variables, ids, rngs):
        return model.apply(variables, ids, rngs=rngs, mutable=["batch_stats", "counts"])

    return forward, (variables, ids, rngs)


@functools.cache
def taken(*, compiled):
    """Take out all calls of the model that the tests ask about, in one pass."""
    forward, args = restless()
    fn = jax.jit(forward) if compiled else forward
    paths = [Path.parse(text) for text in ("rest", "head", "embed:attend")]
    return Isolator(fn, paths).run(args, {})


@pytest.mark.slow  # Eagerly, layer by layer, and compiled.
@pytest.mark.parametrize("compiled", [False, True])
def test_every_call_is_made_again_to_the_last_bit(compiled):
    forward, args = restless()
    untouched = (jax.jit(forward) if compiled else forward)(*args)

    rest, head, attend = taken(compiled=compiled)

    calls = [*rest, *head, *attend]
    paths = ["rest", "rest#1", "rest#2", "head", "embed:attend"]
    assert [call.path for call in calls] == paths
    # `init` made three calls.
    assert [int(call.state["counts"]["calls"]) for call in rest] == [3, 4, 5]
    assert rest[1].inputs.scale == 3.0
    again = jax.jit(lambda call: call.run()) if compiled else lambda call: call.run()
    for call in calls:
        for _ in range(2):
            output, state = again(call)
            assert_same(output, call.output)
            assert_same(state, call.state_after)
    left = {name: rest[2].state_after[name] for name in ("batch_stats", "counts")}
    # More outputs may change a fusion of the whole program, though not by much.
    close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6)
    same = assert_same if not compiled else functools.partial(jax.tree.map, close)
    same(head[0].output, untouched[0])
    same(left, {name: untouched[1][name]["rest"] for name in left})


@pytest.mark.slow  # Compiles the whole model.
def test_parameters_from_elsewhere_come_along():
    _, args = restless()

    head = taken(compiled=True)[1][0]

    assert_same(head.params["/embed"], args[0]["params"]["embed"])
    assert_same(head.params["Dense_0"], args[0]["params"]["head"]["Dense_0"])
    doubled = {
        **head.params,
        "/embed": {"embedding": 2 * head.params["/embed"]["embedding"]},
    }
    assert_same(head.replace(params=doubled)(), 2 * head())


@pytest.mark.parametrize("name", ["remat", "nn.jit", "scan", "scan, remat inside"])
def test_under_transformations_each_layer_is_a_call(name):
    model, variables = transformed(name)
    scanned = "scan" in name
    expected = [
        isolate(plain()[0].apply, f"blocks_{i}/attn")(plain()[1], batch())
        for i in range(LAYERS)
    ]
    paths = ["blocks/block/attn"] if scanned else [f"blocks_{i}/attn" for i in range(3)]

    found = [isolate(model.apply, path)(variables, batch()) for path in paths]

    calls = found[0] if scanned else found
    assert len(calls) == LAYERS
    for call, want in zip(calls, expected, strict=True):
        # Two programs: XLA may round their tanh and matmul differently.
        np.testing.assert_allclose(call.output, want.output, atol=1e-6)
        assert_same(call.params, want.params)
        np.testing.assert_allclose(call(), call.output, atol=1e-6)
    if scanned:
        assert [c.path for c in calls] == [f"blocks[{i}]/block/attn" for i in range(3)]


def test_layers_of_a_stack_can_be_asked_for():
    model, variables = transformed("scan")
    whole = isolate(model.apply, "blocks/block/attn")(variables, batch())

    one = isolate(model.apply, "blocks[1]/block/attn")(variables, batch())
    two = isolate(model.apply, "blocks[1:3]/block/attn")(variables, batch())

    assert_same((one.params, one.state), (whole[1].params, whole[1].state))
    # Two programs: XLA may round differently.
    for seen, same in (
        (one.inputs.x, whole[1].inputs.x),
        (one.output, whole[1].output),
    ):
        np.testing.assert_allclose(seen, same, atol=1e-6)
    assert one.path == "blocks[1]/block/attn"
    assert [call.path for call in two] == [call.path for call in whole[1:]]
    with pytest.raises(BadInput, match=r"layer 3, but 'blocks' has 3"):
        isolate(model.apply, "blocks[3]/block/attn")(variables, batch())


def test_it_is_called_on_other_inputs_and_under_transformations():
    model, variables = plain()
    call = isolate(model.apply, "blocks_1/attn")(variables, batch())
    x = 1 + batch()

    expected = Attn().apply({"params": variables["params"]["blocks_1"]["attn"]}, x, 5.0)
    assert_same(call(x, scale=5.0), expected)
    assert_same(call.replace(x=x, scale=5.0)(), expected)

    def total(params):
        return call.replace(params=params)().sum()

    gradient = jax.jit(jax.grad(total))(call.params)["Dense_0"]["bias"]
    nudge = jnp.zeros((WIDTH,)).at[0].set(1e-2)
    nudged = [
        total({"Dense_0": {**call.params["Dense_0"], "bias": bias}})
        for bias in (nudge, -nudge)
    ]
    # The bias is zero; the central difference of float32 is good to about 1e-3.
    np.testing.assert_allclose(gradient[0], (nudged[0] - nudged[1]) / 2e-2, rtol=1e-2)
    rows = jax.vmap(lambda x: call(x=x))(jnp.stack([x, -x]))
    np.testing.assert_allclose(rows[1], call(x=-x), atol=1e-6)


def test_a_glob_must_fit_one_path():
    model, variables = plain()
    assert isolate(model.apply, "*_1/attn")(variables, batch()).path == "blocks_1/attn"
    with pytest.raises(BadInput, match=r"fits 3 paths: 'blocks_0/attn'"):
        isolate(model.apply, "blocks_*/attn")(variables, batch())


def test_an_unknown_call_is_an_error_that_lists_near_matches():
    model, variables = plain()
    with pytest.raises(UnreachedCall, match=r"'blocks_9/attn'.*'blocks_0/attn'"):
        isolate(model.apply, "blocks_9/attn")(variables, batch())
    call = isolate(model.apply, "blocks_0/attn")(variables, batch())
    with pytest.raises(BadInput, match=r"'y'.*'x'"):
        call(y=1)
    with pytest.raises(BadInput, match="structure"):
        call.replace(params={})


def test_the_layer_is_bound_and_nothing_comes_back():
    model, variables = plain()
    call = isolate(model.apply, "blocks_0")(variables, batch())

    assert_same(call.layer(call.inputs.x), call.output)
    assert repr(call) == (
        "Isolated('blocks_0': Block(x=float32[2, 4]) -> float32[2, 4])"
    )
    assert "float32[2, 4]" in call._repr_html_()


def test_it_sees_what_an_edit_made_and_reaches_into_it():
    model, variables = plain()
    call = isolate(model.apply, "blocks_0/attn")(variables, batch())

    edited = edit(model.apply, {"blocks_1/attn": lambda *_: call.output})
    seen = isolate(edited, "blocks_1/attn")(variables, batch())

    assert_same(seen.output, call.output)


def test_a_branch_that_is_not_taken_holds_no_call():
    model, variables = plain()

    def fn(variables, x, *, take):
        return jax.lax.cond(take, lambda x: model.apply(variables, x), jnp.sin, x)

    taken = isolate(fn, "blocks_0/attn")(variables, batch(), take=jnp.array(True))

    np.testing.assert_allclose(taken(), taken.output, atol=1e-6)
    with pytest.raises(UnreachedCall, match="not made"):
        isolate(fn, "blocks_0/attn")(variables, batch(), take=jnp.array(False))


def test_each_lane_of_a_vmap_is_a_call():
    model, variables = plain()
    fn = jax.vmap(model.apply, in_axes=(None, 0))

    lanes = isolate(fn, "blocks_0/attn")(variables, jnp.stack([batch(), -batch()]))

    assert [call.origin.index for call in lanes] == [(0,), (1,)]
    for call, x in zip(lanes, (batch(), -batch()), strict=True):
        assert_same(call.inputs.x, x)
        np.testing.assert_allclose(call(), call.output, atol=1e-6)
