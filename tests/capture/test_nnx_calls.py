"""NNX calls have the paths, inputs, axes and faults that Linen calls have."""

import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.capture.nnx_twins import WIDTH, Attn, Block, batch, rows, transformed
from tests.capture.same import assert_same
from theseus_track.capture import Site, discover, edit, watch
from theseus_track.errors import BadInput, UnreachedCall


class Enc(nnx.Module):
    """Methods besides __call__, a keyword-only argument and defaults."""

    def __init__(self, rngs):
        self.dense = nnx.Linear(WIDTH, WIDTH, rngs=rngs)

    def encode(self, x, *, scale=2.0, mask=None):
        return self.dense(x) * scale

    def __call__(self, x):
        return self.encode(x, scale=3.0)


class Parts(nnx.Module):
    """Submodules in every kind of container, one of them at two places."""

    def __init__(self, rngs):
        self.tied = Enc(rngs)
        self.also = self.tied
        self.many: Any = nnx.List([Enc(rngs), nnx.Dict(inner=Enc(rngs))])
        self.chain = nnx.Sequential(Attn(rngs), nnx.relu, Attn(rngs))
        self.unused = Enc(rngs)

    def __call__(self, x):
        x = self.tied(self.also(x[:1]))
        first, others = self.many
        x = first(others["inner"](x))
        return self.chain(x + Enc(nnx.Rngs(0)).encode(x))


def step(model, x):
    return model(x)


def test_paths_are_those_of_the_parameter_tree():
    model = Parts(nnx.Rngs(0))

    found = discover(step, model, batch())

    assert list(found) == [
        "",
        *("also", "also/dense", "also#1", "also/dense#1"),
        *("many/1/inner", "many/1/inner/dense", "many/0", "many/0/dense"),
        # Made in the call, so it has no parameters in the tree.
        "Enc/dense",
        *("chain", "chain/layers/0", "chain/layers/0/dense"),
        *("chain/layers/2", "chain/layers/2/dense"),
    ]
    state = nnx.to_flat_state(nnx.state(model))
    tree = {"/".join(map(str, path[:-1])) for path, _ in state}
    used = {path for path in found if path.endswith("dense")}
    assert used - {"Enc/dense"} == tree - {"unused/dense"}


def test_calls_say_class_shapes_and_inputs_by_name():
    found = discover(step, Parts(nnx.Rngs(0)), batch(), target=Enc, methods=("encode",))

    call = found["also:encode"]
    assert call.cls == f"{Enc.__module__}.Enc"
    assert call.method == "encode"
    assert call.inputs == {
        "x": jax.ShapeDtypeStruct((1, WIDTH), jnp.float32),
        "scale": None,
        "mask": None,
    }
    assert call.output == jax.ShapeDtypeStruct((1, WIDTH), jnp.float32)
    assert "Enc:encode" in found


def test_keyword_only_arguments_and_defaults():
    site = Site(
        target=Enc,
        select=list,
        analyze=lambda layer, inputs: (
            inputs.scale,
            layer.encode(inputs.x, scale=inputs.scale) - inputs.output,
        ),
        methods=("encode",),
    )

    def both(model, x):
        return model.encode(x) + model(x)

    _, captures = watch(both, {"s": site}, strict=True)(Enc(nnx.Rngs(0)), batch())

    (first, zero), (second, _) = captures["s"].values.values()
    assert list(captures["s"].values) == [":encode", ":encode#1"]
    assert (float(first), float(second)) == (2.0, 3.0)
    np.testing.assert_array_equal(zero, np.zeros_like(zero))


def test_several_calls_of_a_shared_module_keep_their_own_inputs():
    model = Parts(nnx.Rngs(0))
    site = Site(target=Enc, select=list, analyze=lambda _, inputs: inputs.x)

    _, captures = watch(nnx.jit(step), {"s": site}, strict=True)(model, batch())

    values = captures["s"].values
    np.testing.assert_array_equal(values["also"], batch()[:1])
    np.testing.assert_allclose(values["also#1"], model.tied(batch()[:1]), rtol=1e-6)


def test_faults_name_path_and_class():
    def fail(layer, inputs):
        raise ZeroDivisionError("by design")

    sites = {
        "fails": Site(target=Attn, select=lambda p: p[1], analyze=fail),
        "none": Site(target=Enc, select=list, analyze=fail),
        "unknown": Site(target=Attn, select=lambda p: "blocks/7/attn", analyze=fail),
        "strings": Site(target=Attn, select=list, analyze=lambda *_: {"a": "text"}),
        "good": Site(target=Attn, select=list, analyze=lambda _, inputs: inputs.x),
    }

    _, captures = watch(step, sites)(transformed("plain"), batch())

    messages = {name: fault.message for name, fault in captures.faults.items()}
    assert set(messages) == set(sites) - {"good"}
    assert "'blocks/1/attn' (Attn)" in messages["fails"]
    assert "Attn, Block" in messages["none"]
    assert "Did you mean 'blocks/" in messages["unknown"]
    assert "['a']" in messages["strings"]
    assert len(captures["good"].values) == 3


@pytest.mark.parametrize("name", ["plain", "nnx.jit"])
@pytest.mark.parametrize("compiled", [False, True])
def test_ablation_equals_a_model_without_the_layer(name, compiled):
    fn = nnx.jit(step) if compiled else step
    model = transformed(name)
    untouched = fn(model, batch())

    edited = edit(fn, {"blocks/1/attn": lambda layer, inputs, output: 0 * output})

    x = rows()[1]["x"]
    kernel, bias = (
        np.asarray(part[...])
        for part in (model.blocks[2].attn.dense.kernel, model.blocks[2].attn.dense.bias)
    )
    expected = x + np.tanh((x @ kernel + bias) * 2)
    for _ in range(2):
        np.testing.assert_allclose(edited(model, batch()), expected, atol=2e-6)
    assert_same(fn(model, batch()), untouched)


def test_all_layers_of_a_scan_are_edited_and_a_watched_edit_shows_it():
    edited = edit(step, {"blocks/attn": lambda layer, inputs, output: 0 * output})
    site = Site(target=Block, select=list, analyze=lambda _, inputs: inputs.output)

    out, captures = watch(nnx.jit(edited), {"s": site}, strict=True)(
        transformed("scan"), batch()
    )

    np.testing.assert_array_equal(out, batch())
    for layer in captures["s"].values["blocks"]:
        np.testing.assert_array_equal(layer, batch())


def test_edits_say_what_is_wrong():
    model = transformed("plain")
    with pytest.raises(UnreachedCall, match="blocks/1/attn"):
        edit(step, {"blocks/1/atn": lambda *_: None})(model, batch())
    with pytest.raises(BadInput, match=r"blocks/1/attn"):
        edit(step, {"blocks/1/attn": lambda *call: call[-1][0]})(model, batch())


def test_modules_that_are_equal_but_for_their_place_stay_equal():
    def stacked(model, x):
        blocks = jax.tree.map(lambda *leaves: jnp.stack(leaves), *model.blocks)
        return jax.lax.scan(lambda x, block: (block(x), None), x, blocks)[0]

    found = discover(stacked, transformed("plain"), batch(), target=Attn)

    (path,) = found
    assert path.endswith("attn")
    assert found[path].axes == ("scan3",)


@pytest.mark.slow  # Starts a Python of its own.
def test_linen_alone_does_not_load_nnx():
    program = (
        "import sys, jax, flax.linen as nn\n"
        "from theseus_track.capture import discover\n"
        "model, x = nn.Dense(2), jax.numpy.ones((1, 3))\n"
        "variables = jax.eval_shape(model.init, jax.random.key(0), x)\n"
        "assert list(discover(model.apply, variables, x)) == ['']\n"
        "assert 'flax.nnx' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
