"""outline: modules, calls and parameter counts, compared with models that exist."""

import json
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from tests.capture import nnx_twins, twins
from tests.jobs.small import Hidden, Small
from tests.models import TinyGPT, gpt_and_variables, tokens
from theseus_track.errors import BadInput, NotFound
from theseus_track.jobs import ModuleOutline, Recipe, outline, recipe_of
from theseus_track.records import dumps


def _numbers(tree: object) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def _recipe(model: nn.Module, x: object) -> Recipe:
    variables = jax.eval_shape(model.init, jax.random.key(0), x)
    return Recipe(model.apply, variables, x)


def _found(recipe: Recipe, **options: Any) -> dict[str, ModuleOutline]:
    return {module.path: module for module in outline(recipe, **options)}


def test_parameters_are_counted_at_and_below_each_module() -> None:
    model, variables = gpt_and_variables()
    found = _found(Recipe(model.apply, variables, tokens()))
    params = variables["params"]
    assert found[""].parameters == _numbers(params)
    assert found["blocks_1"].parameters == _numbers(params["blocks_1"])
    assert found["blocks_1/attn"].parameters == _numbers(params["blocks_1"]["attn"])
    assert found["blocks_1/attn/q"].parameters == 16 * 16 + 16


def test_each_module_comes_before_those_inside_it() -> None:
    model, variables = gpt_and_variables()
    paths = [
        module.path for module in outline(Recipe(model.apply, variables, tokens()))
    ]
    assert paths[:4] == ["", "embed", "blocks_0", "blocks_0/LayerNorm_0"]
    assert paths[-1] == "head"


def test_shapes_are_those_of_the_call() -> None:
    call = _found(_recipe(TinyGPT(), tokens()))["blocks_0/attn"].calls[0]
    assert call.inputs["x"].shape == call.output.shape == (2, 7, 16)
    assert call.output.dtype == jnp.float32


@pytest.mark.parametrize("name", twins.SCANNED)
def test_a_stack_names_its_layers_and_counts_them_all(name: str) -> None:
    model, variables = twins.transformed(name)
    found = _found(Recipe(model.apply, variables, twins.batch()))
    attn = found["blocks/block/attn"]
    assert attn.layers == "blocks[0:3]/block/attn"
    assert attn.parameters == _numbers(variables["params"])
    assert attn.calls[0].axes == ("scan3",)
    # Those of one layer: the axis stands in front of what is taken out.
    assert attn.calls[0].output.shape == (2, 4)


@pytest.mark.parametrize("name", [*nnx_twins.UNROLLED, *nnx_twins.SCANNED])
def test_nnx_is_as_linen(name: str) -> None:
    nnx_twins.weights()  # kept, so that it is not made in the abstract
    model = nnx.eval_shape(lambda: nnx_twins.transformed(name))
    found = _found(Recipe(lambda m, x: m(x), model, nnx_twins.batch()))
    assert found[""].parameters == nnx_twins.LAYERS * (4 * 4 + 4)
    if name in nnx_twins.SCANNED:
        assert found["blocks/attn"].layers == "blocks[0:3]/attn"
        assert found["blocks/attn"].parameters == found[""].parameters
    else:
        assert found["blocks/2/attn"].layers is None
        assert found["blocks/2/attn"].parameters == 4 * 4 + 4


def test_of_nnx_only_parameters_are_counted() -> None:
    class Net(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.norm = nnx.BatchNorm(4, rngs=rngs)
            self.drop = nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            return self.drop(self.norm(x))

    def step(state: object, x: jax.Array) -> jax.Array:
        return nnx.merge(graphdef, state)(x)

    model = nnx.eval_shape(lambda: Net(nnx.Rngs(0)))
    graphdef, state = nnx.split(model)
    batch = jnp.ones((2, 4))
    for recipe in (
        Recipe(lambda model, x: model(x), model, batch),
        Recipe(step, state, batch),
    ):
        assert _found(recipe)["norm"].parameters == 8
        assert _found(recipe)[""].parameters == 8


def test_a_tree_without_a_collection_is_the_parameters_themselves() -> None:
    model, variables = gpt_and_variables()
    params = variables["params"]
    step = lambda params, batch: model.apply({"params": params}, batch)  # noqa: E731
    found = _found(Recipe(step, params, tokens()))
    assert found["blocks_0"].parameters == _numbers(params["blocks_0"])


def test_a_module_called_twice_has_two_calls() -> None:
    class Tied(nn.Module):
        @nn.compact
        def __call__(self, x: jax.Array) -> jax.Array:
            dense = nn.Dense(4, name="dense")
            return dense(dense(x))

    dense = _found(_recipe(Tied(), jnp.ones((2, 4))))["dense"]
    assert [call.path for call in dense.calls] == ["dense", "dense#1"]
    assert dense.parameters == 20


def test_other_methods_are_found_when_asked_for() -> None:
    class Coder(nn.Module):
        def setup(self) -> None:
            self.dense = nn.Dense(4)

        def encode(self, x: jax.Array) -> jax.Array:
            return self.dense(x)

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: jax.Array) -> jax.Array:
            return Coder(name="coder").encode(x)

    recipe = _recipe(Net(), jnp.ones((2, 4)))
    assert "coder" not in _found(recipe)
    found = _found(recipe, methods=("__call__", "encode"))
    assert [call.path for call in found["coder"].calls] == ["coder:encode"]
    assert found["coder"].parameters == 20


@pytest.mark.parametrize("name", ["Attention", "tests.models.Attention"])
def test_a_class_is_named_as_it_is_written(name: str) -> None:
    found = _found(_recipe(TinyGPT(), tokens()), cls=name)
    assert list(found) == ["blocks_0/attn", "blocks_1/attn"]


def test_a_class_finds_its_transformed_subclasses() -> None:
    model, variables = twins.transformed("remat")
    found = _found(Recipe(model.apply, variables, twins.batch()), cls="Block")
    assert list(found) == ["blocks_0", "blocks_1", "blocks_2"]


def test_an_unknown_class_is_named_with_the_nearest() -> None:
    with pytest.raises(NotFound, match=r"'Attentions'.*'Attention'.*'TinyGPT'"):
        outline(_recipe(TinyGPT(), tokens()), cls="Attentions")


def test_a_method_that_is_never_called_is_said() -> None:
    with pytest.raises(NotFound, match="encode"):
        outline(_recipe(TinyGPT(), tokens()), methods=("encode",))


def test_a_step_that_cannot_be_traced_is_one_line() -> None:
    model = TinyGPT()
    variables = jax.eval_shape(model.init, jax.random.key(0), tokens())
    with pytest.raises(BadInput, match="cannot be traced") as caught:
        outline(Recipe(model.apply, variables, "no tokens"))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.slow  # compiles what draws the parameters
def test_a_trainer_allocates_nothing() -> None:
    trainer = Small()
    recipe = recipe_of(trainer)
    arrays = [x for x in jax.tree.leaves(recipe.variables) if isinstance(x, jax.Array)]
    assert arrays == []
    found = _found(recipe, cls="Hidden")
    trainer.setup()
    drawn = trainer.state.params
    assert {path: m.parameters for path, m in found.items()} == {
        name: _numbers(drawn[name]) for name in ("hidden_0", "hidden_1")
    }
    assert found["hidden_0"].cls == f"{Hidden.__module__}.Hidden"


def test_json_is_strict_and_holds_the_shapes() -> None:
    row: Any = _found(_recipe(TinyGPT(), tokens()))["blocks_0/attn"].to_json()
    assert json.loads(dumps(row)) == row
    (call,) = row["calls"]
    assert call["inputs"]["x"] == [
        {"leaf": "", "shape": [2, 7, 16], "dtype": "float32"}
    ]
