"""The debugger: a layer of the Trainer's model, usable like one in PyTorch."""

import functools
import logging
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from flax.errors import ScopeParamNotFoundError, ScopeParamShapeError
from jupyter_client.manager import start_new_kernel

from tests.architecture.project import ROOT
from tests.capture.same import assert_same
from theseus_track.capture import Isolated
from theseus_track.capture.isolated_html import table
from theseus_track.jobs import Trainer


class Attn(nn.Module):
    """A compact layer with a child, and a method of its own."""

    @nn.compact
    def __call__(self, x, scale=2.0):
        return nn.Dense(4)(x) * scale

    def doubled(self, x):
        return 2 * x


class Block(nn.Module):
    """A layer with children made in setup; one of them is called twice."""

    def setup(self):
        self.attn = Attn()
        self.drop = nn.Dropout(0.5)

    def __call__(self, x, *, train):
        x = self.attn(x) + self.attn(x, scale=3.0)
        return self.drop(x, deterministic=not train)


class Net(nn.Module):
    """Two blocks."""

    @nn.compact
    def __call__(self, x, *, train):
        for number in range(2):
            x = Block(name=f"blocks_{number}")(x, train=train)
        return x


CALLS: list[bool] = []


class Training(Trainer):
    """Trains it, in principle."""

    MODEL: ClassVar[Any] = Net

    def batches(self, split):
        while True:
            yield jnp.linspace(-1, 1, 8).reshape(2, 4)

    def loss(self, model, batch, *, train):
        CALLS.append(train)
        return jnp.mean(model(batch, train=train) ** 2)


@functools.cache
def trainer():
    made = Training()
    made.setup()
    return made


def test_find_lists_paths_once_in_the_order_of_the_calls():
    expected = [("blocks_0", "attn"), ("blocks_1", "attn")]
    assert trainer().find(Attn) == expected
    assert trainer().find(nn.Embed) == []
    for wrong in (dict, "Attn", Attn()):
        with pytest.raises(TypeError, match="module class"):
            trainer().find(wrong)


@pytest.mark.parametrize("path", ["blocks_0/attn", ("blocks_0", "attn")])
def test_it_unpacks_into_layer_and_inputs(path):
    layer, inputs = trainer().debug(path)

    assert_same(inputs.x, trainer().batch())
    assert inputs.scale == inputs["scale"] == 2
    assert {"x", "scale", "output"} <= set(dir(inputs))
    assert isinstance(layer, Attn)
    assert_same(layer(inputs.x), inputs.output)
    assert_same(layer(inputs.x, scale=4.0), 2 * inputs.output)
    assert_same(layer.doubled(inputs.x), 2 * inputs.x)


@pytest.mark.parametrize("root", ["", ()])
def test_the_root_can_be_debugged_and_its_children_called(root):
    model, inputs = trainer().debug(root)
    block, given = trainer().debug("blocks_0")

    assert_same(model(inputs.x, train=False), inputs.output)
    assert_same(block.attn(given.x), trainer().debug("blocks_0/attn").output)


def test_parameters_and_inputs_are_those_of_the_state_not_copies(monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("fetched or copied")

    state = trainer().state
    monkeypatch.setattr(jax, "device_get", refuse)
    monkeypatch.setattr(type(jnp.zeros(1)), "__deepcopy__", refuse, raising=False)

    layer, _ = trainer().debug("blocks_1/attn")

    own = layer.variables["params"]["Dense_0"]["kernel"]
    assert own is state.params["blocks_1"]["attn"]["Dense_0"]["kernel"]


def test_children_are_written_as_in_the_layer_and_get_no_new_parameters():
    with trainer().debug("blocks_0/attn") as (layer, inputs):
        assert_same(nn.Dense(4)(inputs.x) * 2, inputs.output)
        with pytest.raises(ScopeParamNotFoundError):
            nn.Dense(4, name="other")(inputs.x)
        params = layer.variables["params"]
    assert list(params) == ["Dense_0"]
    debugger = trainer().debug("blocks_0/attn")
    with debugger as (_, inputs), pytest.raises(ScopeParamShapeError):
        nn.Dense(5)(inputs.x)
    # Nothing of it is left: a module built now belongs to nobody.
    assert nn.Dense(4).scope is None


def test_a_reused_parameter_is_told_once(caplog):
    caplog.set_level(logging.INFO, "theseus_track.capture.isolate_linen")
    with trainer().debug("blocks_0/attn") as (layer, inputs):
        assert_same(layer(inputs.x), inputs.output)
        assert not caplog.messages  # The layer's own children are no news.
        first = nn.Dense(4)
        assert_same(first(inputs.x) * 2, inputs.output)
        assert_same(first(inputs.x) * 2, inputs.output)
        assert_same(layer(inputs.x), inputs.output)
    told = [f"reused parameter blocks_0/attn/Dense_0/{x}" for x in ("kernel", "bias")]
    assert caplog.messages == told


def test_several_layers_are_of_one_forward_pass_and_close_together():
    def passes(path):
        CALLS.clear()
        found = trainer().debug(path)
        return len(CALLS), found

    alone, _ = passes("blocks_1/attn")
    paths = ["blocks_1/attn", ("blocks_0",), "blocks_0/attn#1"]
    together, layers = passes(paths)

    assert together == alone
    assert [layer.calls[0].path for layer in layers] == [
        "blocks_1/attn",
        "blocks_0",
        "blocks_0/attn#1",
    ]
    with layers as (last, (block, given), second):
        assert_same(block.attn(given.x, scale=3.0), second.output)
        with last.activate() as attn, pytest.raises(ScopeParamShapeError):
            nn.Dense(5)(attn.doubled(last.inputs.x))
        with second.activate():
            assert_same(nn.Dense(4)(second.inputs.x) * 3, second.output)
    assert repr(layers) == f"DebuggedLayers({', '.join(['Debugged(closed)'] * 3)})"
    assert layers._repr_html_().count("closed") == len(layers)
    with pytest.raises(RuntimeError, match="closed"), last.activate():
        pass
    with pytest.raises(LookupError, match="'blocks_9'"):
        trainer().debug(["blocks_0", "blocks_9"])
    with pytest.raises(ValueError, match="empty"):
        trainer().debug([])


class Dropping(nn.Module):
    """One dropout, called twice, with a stream of its own."""

    @nn.compact
    def __call__(self, x):
        drop = nn.Dropout(0.5, deterministic=False)
        return drop(drop(x)) + drop(x)


class DroppingTraining(Training):
    """Drops in evaluation too, so that the debugger meets it."""

    MODEL: ClassVar[Any] = Dropping

    def loss(self, model, batch, *, train):
        dropping: Any = Dropping()
        rngs = {"dropout": jax.random.key(3)}
        return jnp.mean(dropping.apply({}, batch, rngs=rngs))


def test_each_call_of_a_shared_dropout_replays_exactly():
    made = DroppingTraining()
    made.setup()
    calls = made.debug("Dropout_0").calls
    assert len(calls) == 3
    assert np.any(calls[0].output != calls[2].output)  # Of the same input.

    layers = made.debug([f"Dropout_0#{number}" for number in range(3)])
    for debugged, call in zip(layers, calls, strict=True):
        layer, inputs = debugged
        assert_same(inputs.output, call.output)
        assert_same(layer(inputs.inputs), inputs.output)
    (_, second, _), (model, given) = layers, made.debug("")
    assert_same(model(given.x), given.output)
    assert_same(second.calls[0](), second.output)


def test_all_calls_are_there():
    calls = trainer().debug("blocks_0/attn").calls

    assert [call.inputs.scale for call in calls] == [2.0, 3.0]
    assert all(isinstance(call, Isolated) for call in calls)
    for call in calls:
        assert_same(call(), call.output)
    assert len(trainer().debug("blocks_0/attn#1").calls) == 1


def test_closing_twice_is_once_and_then_it_is_closed():
    debugger = trainer().debug("blocks_0/attn")
    debugger.close()
    debugger.close()
    with pytest.raises(RuntimeError, match="closed"):
        _layer, _inputs = debugger
    with pytest.raises(KeyError), trainer().debug("blocks_0/attn") as (_, inputs):
        inputs["nothing"]
    assert nn.Dense(4).parent is None
    assert "closed" in repr(debugger)
    traced = []

    @jax.jit
    def compiled(x):
        traced.append(x)
        return x

    compiled(1.0)
    assert isinstance(traced[0], jax.core.Tracer)  # JIT is on.


def test_what_is_no_path_is_an_error():
    for wrong in ("a[", 3, ("a", 1)):
        with pytest.raises(ValueError, match="no path"):
            trainer().debug(wrong)
    with pytest.raises(LookupError, match="'blocks_0/attn'"):
        trainer().debug("blocks_9/attn")


def test_it_shows_itself_in_a_notebook():
    debugger = trainer().debug("blocks_0/attn")
    assert "float32[2, 4]" in debugger._repr_html_()
    assert "kernel" in table(debugger.calls[0])
    debugger.close()
    assert "closed" in debugger._repr_html_()


CELLS = (
    "from tests.jobs.test_debug import Training",
    "trainer = Training(); trainer.setup()",
    "debugger = trainer.debug(trainer.find(type(trainer.debug('').layer))[0])",
    "layer, inputs = trainer.debug('blocks_1/attn')",
    "print(bool((layer(inputs.x) == inputs.output).all()))",
    "trainer.debug('blocks_1/attn')",
)


@pytest.mark.slow  # Starts a Jupyter kernel with JAX.
def test_it_works_cell_by_cell_in_a_notebook():
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(ROOT))
    try:
        printed, shown = [], []

        def keep(message):
            printed.append(message["content"].get("text", ""))
            shown.extend(message["content"].get("data", {}))

        for cell in CELLS:
            reply = client.execute_interactive(cell, timeout=120, output_hook=keep)
            assert reply["content"]["status"] == "ok", reply["content"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert "True" in "".join(printed)
    assert "text/html" in shown


class NnxNet(nnx.Module):
    """A model of NNX."""

    def __init__(self, rngs):
        self.first = nnx.Linear(4, 4, rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)

    def __call__(self, x):
        return self.norm(self.first(x))


class NnxTraining(Training):
    """Trains that."""

    MODEL: ClassVar[Any] = NnxNet

    def loss(self, model, batch, *, train):
        return jnp.mean(model(batch) ** 2)


def test_an_nnx_model_is_debugged_alike():
    made = NnxTraining()
    made.setup()
    assert made.find(nnx.Linear) == [("first",)]

    with made.debug("") as (model, inputs):
        assert_same(model(inputs.x), inputs.output)
        assert_same(model.first(inputs.x), made.debug("first").output)
