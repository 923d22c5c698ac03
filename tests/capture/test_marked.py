"""Values that no call returns: tapped in code, or sown by modules."""

import warnings

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from theseus_track.capture import Site, Sown, Tapped, discover, reap, tap, watch
from theseus_track.errors import AnalysisFault

WIDTH = 3


class Attn(nn.Module):
    """Sows what its parent sows under the same name too, and taps an inner value."""

    heads: int = 2

    @nn.compact
    def __call__(self, x, _=None):
        weights = nn.softmax(nn.Dense(WIDTH)(x))
        self.sow("intermediates", "weights", weights)
        self.sow("losses", "weights", weights.sum())
        hidden = weights * x
        return tap("hidden", hidden + x, {"h": 2 * hidden}), None


class Net(nn.Module):
    scanned: bool = False

    @nn.compact
    def __call__(self, x):
        if self.scanned:
            stack = nn.scan(
                nn.remat(Attn),
                # Not even an axis for what is sown: Flax itself would lose it.
                variable_axes={"params": 0},
                split_rngs={"params": True},
                length=4,
            )
            x, _ = stack(name="blocks")(x, None)
        else:
            for i in range(2):
                x, _ = Attn(name=f"blocks_{i}")(x)
        self.sow("intermediates", "last", x)
        return x


def twin_attn(module, x):
    weights = nnx.softmax(module.dense(x))
    # Outside of `nnx.capture` NNX warns of it.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        module.sow(nnx.Intermediate, "weights", weights)
    hidden = weights * x
    return tap("hidden", hidden + x, {"h": 2 * hidden})


class NnxAttn(nnx.Module):
    heads = 2

    def __init__(self, rngs):
        self.dense = nnx.Linear(WIDTH, WIDTH, rngs=rngs)

    __call__ = twin_attn


class NnxNet(nnx.Module):
    def __init__(self, rngs):
        self.blocks = nnx.List([NnxAttn(rngs) for _ in range(2)])

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def site(target, select=lambda paths: paths):
    def analyze(layer, inputs):
        assert inputs.value is inputs.output
        return {"value": inputs.value, "heads": getattr(layer, "heads", 0)}

    return Site(target=target, select=select, analyze=analyze)


def linen_step(scanned):
    model, x = Net(scanned), jax.random.normal(jax.random.key(0), (2, WIDTH))
    variables = model.init(jax.random.key(1), x)
    variables = {"params": variables["params"]}

    def step(variables, x):
        out, state = model.apply(variables, x, mutable=["intermediates"])
        return tap("loss", (out**2).mean(), out.sum()), state

    return step, (variables, x)


SITES = {
    "all": site(Sown("weights")),
    "one": site(Sown("weights", "losses"), lambda paths: paths[-1]),
    "last": site(Sown("last")),
    "hidden": site(Tapped("hidden")),
    "loss": site(Tapped("loss")),
}


def test_linen_values_are_found_by_path_and_name():
    step, args = linen_step(scanned=False)
    calls = discover(step, *args, target=Sown())
    assert list(calls) == [
        *(f"blocks_{i}/weights{n}" for i in range(2) for n in ("", "#1")),
        "last",
    ]
    assert calls["last"].output.shape == (2, WIDTH)
    assert not any("weights" in path for path in discover(step, *args))

    out, captures = watch(jax.jit(step), SITES, strict=True)(*args)

    plain = jax.jit(step)(*args)
    jax.tree.map(np.testing.assert_array_equal, out, plain)
    state = out[1]["intermediates"]
    found = captures["all"].values
    for i in range(2):
        (sown,) = state[f"blocks_{i}"]["weights"]
        own = found[f"blocks_{i}/weights"]
        np.testing.assert_allclose(own["value"], sown, rtol=1e-6)
        # Of a collection that is not mutable too, as Flax would drop it.
        own = found[f"blocks_{i}/weights#1"]
        np.testing.assert_allclose(own["value"], sown.sum(), rtol=1e-6)
    assert captures["one"].selected == ("blocks_1/weights",)
    np.testing.assert_array_equal(
        captures["last"].values["last"]["value"], state["last"][0]
    )


def test_tapped_values_are_found_where_they_are_tapped():
    step, args = linen_step(scanned=False)

    out, captures = watch(jax.jit(step), SITES, strict=True)(*args)

    hidden, loss = captures["hidden"].values, captures["loss"].values["loss"]
    assert list(hidden) == ["blocks_0/hidden", "blocks_1/hidden"]
    reaped = reap(step)(*args)[1]
    for one, name in zip(hidden.values(), ("hidden", "hidden#1"), strict=True):
        np.testing.assert_allclose(one["value"]["h"], reaped[name]["h"], rtol=1e-6)
        assert one["heads"] == 2
    # The layer of a value that no module tapped is None.
    assert loss["heads"] == 0
    np.testing.assert_allclose(loss["value"], reaped["loss"], rtol=1e-6)
    assert out[0].shape == ()


@pytest.mark.slow  # compiles a rematerialised scan and its gradient
def test_they_leave_a_differentiated_scan_by_layer():
    step, (variables, x) = linen_step(scanned=True)

    def grads(variables, x):
        return jax.value_and_grad(lambda v: step(v, x)[0])(variables)

    sites = SITES | {
        "third": site(Sown("weights"), lambda _: "blocks[2]/weights"),
        "middle": site(Tapped("hidden"), lambda _: ["blocks[1:3]/hidden"]),
    }
    out, captures = watch(jax.jit(grads), sites, strict=True)(variables, x)

    jax.tree.map(np.testing.assert_array_equal, out, jax.jit(grads)(variables, x))
    assert list(captures["all"].values) == ["blocks/weights", "blocks/weights#1"]
    whole = captures["all"].values["blocks/weights"]["value"]
    expected = []
    h = x
    for kernel in variables["params"]["blocks"]["Dense_0"]["kernel"]:
        expected.append(jax.nn.softmax(h @ kernel))
        h = expected[-1] * h + h
    np.testing.assert_allclose(whole, jnp.stack(expected), atol=1e-6)
    third = captures["third"].values["blocks[2]/weights"]["value"]
    np.testing.assert_allclose(third, whole[2], atol=1e-6)
    middle = captures["middle"].values["blocks[1:3]/hidden"]["value"]["h"]
    stacked = captures["hidden"].values["blocks/hidden"]["value"]["h"]
    np.testing.assert_allclose(middle, stacked[1:3], atol=1e-6)


def test_nnx_values_are_found_alike_and_its_state_is_the_users():
    x = jax.random.normal(jax.random.key(0), (2, WIDTH))
    model, twin = NnxNet(nnx.Rngs(0)), NnxNet(nnx.Rngs(0))
    step = nnx.jit(lambda model, x: (model(x) ** 2).mean())
    sites = {
        "all": site(Sown("weights", nnx.Intermediate)),
        "hidden": site(Tapped()),
        "none": site(Sown("weights", nnx.BatchStat)),
    }
    before = dict(vars(nnx.Module))

    out, captures = watch(step, sites)(model, x)

    np.testing.assert_array_equal(out, step(twin, x))
    states = [
        nnx.to_pure_dict(nnx.state(one, nnx.Intermediate)) for one in (model, twin)
    ]
    jax.tree.map(np.testing.assert_array_equal, *states)
    assert dict(vars(nnx.Module)) == before
    assert list(captures["all"].values) == ["blocks/0/weights", "blocks/1/weights"]
    assert list(captures["hidden"].values) == ["blocks/0/hidden", "blocks/1/hidden"]
    for i, block in states[0]["blocks"].items():
        own = captures["all"].values[f"blocks/{i}/weights"]
        np.testing.assert_allclose(own["value"], block["weights"][0], rtol=1e-6)
        assert own["heads"] == 2
    fault = captures["none"].fault
    assert fault is not None
    assert "Sown(name='weights'" in fault.message


def test_nothing_of_ours_is_left_on_flax():
    step, args = linen_step(scanned=False)
    before = dict(vars(nn.Module))

    def fails(layer, inputs):
        raise RuntimeError("no")

    broken = Site(target=Sown(), select=lambda paths: paths, analyze=fails)
    with pytest.raises(AnalysisFault, match="blocks_0/weights"):
        watch(step, {"broken": broken}, strict=True)(*args)
    assert dict(vars(nn.Module)) == before


def test_what_is_sown_in_a_raw_scan_is_found_too():
    class Looping(nn.Module):
        @nn.compact
        def __call__(self, x):
            def body(carry, row):
                self.sow("intermediates", "partial", carry + row)
                return carry + row, None

            return jax.lax.scan(body, jnp.zeros(WIDTH), x)[0]

    x = jnp.arange(6.0).reshape(2, WIDTH)
    _, captures = watch(
        lambda x: Looping().apply({}, x),
        {"partial": site(Sown("partial"))},
        strict=True,
    )(x)
    value = captures["partial"].values["partial"]["value"]
    np.testing.assert_array_equal(value, np.cumsum(x, axis=0))
