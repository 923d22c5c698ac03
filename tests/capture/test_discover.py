"""Discovery names calls as the parameter tree does, in the order of their starts."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest

from tests.capture.twins import Attn, Block, batch, plain, transformed
from theseus_track.capture import discover
from theseus_track.errors import BadInput


class Part(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(x)


class Coder(nn.Module):
    def setup(self):
        self.dense = nn.Dense(4)

    def encode(self, x, *, scale=1.0):
        return self.dense(x) * scale

    def decode(self, x):
        return self.dense(x)

    def __call__(self, x):
        return self.decode(self.encode(x))


class Model(nn.Module):
    given: nn.Module

    def setup(self):
        self.layers = [Part() for _ in range(2)]
        self.tied = self.layers[0]
        self.heads = {"a": Part(), "unused": Part()}
        self.coder = Coder()

    def __call__(self, x, flag=None):
        del flag
        for layer in self.layers:
            x = layer(x)
        x = self.heads["a"](self.tied(self.given(x)))
        return self.coder.encode(x, scale=2.0), "text", None


@pytest.fixture(scope="module")
def model_and_shapes():
    model = Model(Part())
    x = jax.ShapeDtypeStruct((2, 4), jnp.float32)
    return model, jax.eval_shape(model.init, jax.random.key(0), x), x


def test_paths_are_those_of_the_parameter_tree(model_and_shapes):
    model, variables, x = model_and_shapes

    found = discover(model.apply, variables, x, target=Part)

    assert list(found) == ["layers_0", "layers_1", "given", "layers_0#1", "heads_a"]
    assert set(variables["params"]) >= {p.partition("#")[0] for p in found}


def test_all_modules_outer_before_inner(model_and_shapes):
    model, variables, x = model_and_shapes

    found = discover(jax.jit(lambda *a: model.apply(*a)[0]), variables, x)

    assert list(found)[:3] == ["", "layers_0", "layers_0/Dense_0"]
    assert found["layers_0"].cls == f"{Part.__module__}.Part"


def test_other_methods_are_part_of_the_path(model_and_shapes):
    model, variables, x = model_and_shapes

    methods = ("encode", "decode")
    found = discover(model.apply, variables, x, target=Coder, methods=methods)

    assert list(found) == ["coder:encode"]
    call = found["coder:encode"]
    assert call.method == "encode"
    assert dict(call.inputs) == {"x": x, "scale": None}
    assert call.output == x


def test_inputs_and_outputs_are_shapes(model_and_shapes):
    model, variables, x = model_and_shapes

    call = discover(model.apply, variables, x, target=Model)[""]

    assert dict(call.inputs) == {"x": x, "flag": None}
    assert call.output == (x, None, None)
    assert call.axes == ()


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ((Attn, Block), 6),
        (lambda module: isinstance(module, nn.Dense) and module.features == 4, 3),
        (nn.Conv, 0),
    ],
)
def test_targets(target, expected):
    model, variables = plain()
    assert len(discover(model.apply, variables, batch(), target=target)) == expected


def test_a_wrong_target_is_refused():
    with pytest.raises(BadInput, match="'Attn'"):
        discover(lambda: None, target="Attn")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["scan", "scan of remat"])
def test_a_scan_is_found_once_with_its_axis(name):
    model, variables = transformed(name)

    found = discover(model.apply, variables, batch(), target=Attn)

    assert {path: call.axes for path, call in found.items()} == {
        "blocks/block/attn": ("scan3",)
    }


def test_two_models_in_one_function():
    model, variables = plain()

    def step(variables, x):
        return model.apply(variables, model.apply(variables, x))

    found = discover(step, variables, batch(), target=Attn)

    first = [f"blocks_{i}/attn" for i in range(3)]
    assert list(found) == first + [f"{path}#1" for path in first]
    assert list(discover(step, variables, batch(), target=type(model))) == ["", "#1"]


def test_one_jitted_function_called_twice_is_two_calls():
    model, variables = plain()
    forward = jax.jit(model.apply)

    def step(variables, x):
        return forward(variables, forward(variables, x))

    for function in (step, jax.jit(step)):
        found = discover(function, variables, batch(), target=type(model))
        assert list(found) == ["", "#1"]


def test_no_state_is_left_on_the_module():
    model, variables = plain()
    before = dict(vars(model))

    discover(model.apply, variables, batch())

    assert dict(vars(model)) == before
    assert not nn.module._global_interceptor_stack._storage
