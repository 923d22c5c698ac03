"""instrument treats a step of NNX modules as nnx.jit does, and adds Values."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from theseus_track.analysis import AnalysisBase, instrument
from theseus_track.errors import BadInput, ClosedOverState, PlanError

WIDTH = 4


class Block(nnx.Module):
    """A layer with batch statistics, dropout and a count of its own."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.dense = nnx.Linear(WIDTH, WIDTH, rngs=rngs)
        self.norm = nnx.BatchNorm(WIDTH, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.calls = nnx.Variable(jnp.int32(0))

    def __call__(self, x: Any, *, scale: float = 1.0) -> Any:
        self.calls[...] = self.calls[...] + 1
        return x + self.drop(self.norm(self.dense(x))) * scale


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.blocks = nnx.List([Block(rngs) for _ in range(2)])

    def __call__(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x


class Activations(AnalysisBase):
    TARGET = Block

    def select(self, paths: list[str]) -> Any:
        return paths[0]

    def analyze(self, layer: Any, inputs: Any) -> Any:
        return inputs.x[0, :2] * inputs.scale


class Norms(AnalysisBase):
    TARGET = Block

    def select(self, paths: list[str]) -> Any:
        return paths

    def analyze(self, layer: Any, inputs: Any) -> Any:
        layer(inputs.x)
        return jnp.linalg.norm(layer.dense.kernel[...])


class Broken(AnalysisBase):
    TARGET = Block

    def analyze(self, layer: Any, inputs: Any) -> Any:
        raise ZeroDivisionError("by design")


ALL = [Activations, Norms]


def batch() -> Any:
    return jnp.linspace(-1, 1, 3 * WIDTH).reshape(3, WIDTH)


def made() -> Any:
    return Net(nnx.Rngs(0)), nnx.metrics.Average()


def evaluate(model: Any, metrics: Any, x: Any) -> Any:
    y = model(x)
    metrics.update(values=y)
    return {"y": y, "name": x.shape}


def state_of(nodes: Any) -> Any:
    return nnx.to_pure_dict(nnx.state(nodes, nnx.Not(nnx.RngKey)))


@functools.cache
def plain() -> Any:
    """Return the output of the third step, and the state after it."""
    step: Any = nnx.jit(evaluate)
    nodes = made()
    return [step(*nodes, batch()) for _ in range(3)][-1], state_of(nodes)


ORDERS: dict[str, Any] = {
    "instrument of nnx.jit": lambda fn: instrument(nnx.jit(fn), ALL),
    "nnx.jit of instrument": lambda fn: nnx.jit(instrument(fn, ALL)),
}


def assert_close(actual: Any, wanted: Any) -> None:
    # Extra outputs may change how XLA fuses, so that the last bit is not promised.
    def close(one: Any, two: Any) -> None:
        np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-6)

    jax.tree.map(close, actual, wanted)


@pytest.mark.slow  # Compiles the step with and without analyses.
@pytest.mark.parametrize("order", ORDERS)
def test_values_come_beside_and_the_nodes_change_as_without(order: str) -> None:
    step, nodes = ORDERS[order](evaluate), made()
    for _ in range(3):
        out, values = step(*nodes, batch())
    expected, state = plain()
    assert_close(out["y"], expected["y"])
    assert_close(state_of(nodes), state)
    assert not values.faults
    np.testing.assert_array_equal(values["activations"], batch()[0, :2])
    assert list(values["norms"]) == ["blocks/0", "blocks/1"]
    for block, norm in zip(nodes[0].blocks, values["norms"].values(), strict=True):
        np.testing.assert_allclose(norm, np.linalg.norm(block.dense.kernel[...]), 1e-6)


@pytest.mark.slow  # Runs the step operation by operation.
def test_a_plain_step_keeps_what_is_no_array() -> None:
    nodes = made()
    out, values = instrument(evaluate, ALL)(*nodes, batch())
    assert out["name"] == (3, WIDTH)
    assert values.paths("activations") == ("blocks/0",)
    assert nodes[0].blocks[1].calls[...] == 1


@pytest.mark.slow  # Compiles the step both ways.
@pytest.mark.parametrize("order", ORDERS)
def test_cached_partial_of_an_instrumented_step(order: str) -> None:
    nodes = made()
    step: Any = nnx.cached_partial(ORDERS[order](evaluate), *nodes)
    for _ in range(3):
        out, values = step(batch())
    assert_close(out["y"], plain()[0]["y"])
    assert_close(state_of(nodes), plain()[1])
    assert list(values["norms"]) == ["blocks/0", "blocks/1"]


@pytest.mark.parametrize("jitted", [False, True])
def test_the_plan_changes_nothing_and_names_every_fault(jitted: bool) -> None:
    fn = nnx.jit(evaluate) if jitted else evaluate
    nodes = made()
    plan = instrument(fn, ALL).plan(*nodes, batch())
    assert [one.paths for one in plan.analyses] == [
        ("blocks/0",),
        ("blocks/0", "blocks/1"),
    ]
    assert plan.flops is not None
    assert plan.flops_added is not None
    with pytest.raises(PlanError, match=r"blocks/0' \(Block\)"):
        instrument(fn, [*ALL, Broken]).plan(*nodes, batch())
    for one, two in zip(
        jax.tree.leaves(state_of(nodes)), jax.tree.leaves(state_of(made())), strict=True
    ):
        np.testing.assert_array_equal(one, two)


def test_a_fault_costs_one_analysis() -> None:
    _, values = instrument(nnx.jit(evaluate), [*ALL, Broken])(*made(), batch())
    assert set(values.faults) == {"broken"}
    assert list(values["norms"]) == ["blocks/0", "blocks/1"]


@pytest.mark.slow  # Compiles the step with and without analyses.
def test_check_compares_output_and_state_on_copies() -> None:
    nodes = made()
    same = instrument(nnx.jit(evaluate), [Activations]).check(*nodes, batch())
    assert same["['y']"]
    counts = {path: bit for path, bit in same.items() if "calls" in path}
    assert counts
    assert all(counts.values())
    assert nodes[0].blocks[0].calls[...] == 0
    # What a partial holds is an argument like others.
    step = instrument(functools.partial(nnx.jit(evaluate), *nodes), [Activations])
    assert dict(step.check(batch())) == dict(same)
    assert nodes[0].blocks[0].calls[...] == 0


def test_instrumenting_twice_is_an_error() -> None:
    step = instrument(nnx.jit(evaluate), ALL)
    for fn in (step, nnx.jit(step)):
        with pytest.raises(BadInput, match="instrumented already"):
            instrument(fn, ALL)


@pytest.mark.slow  # Traces a model in seven ways.
def test_a_changed_node_that_is_closed_over_is_named() -> None:
    model, _ = made()

    def fn(x: Any) -> Any:
        return model(x) + 1

    named = r"model\.blocks\.0\.calls.*model: Net"
    for ask in (
        instrument(fn, ALL, strict=True),
        instrument(nnx.jit(fn), ALL),
        nnx.jit(instrument(fn, ALL)),
        instrument(jax.jit(fn), ALL).check,
    ):
        with pytest.raises(ClosedOverState, match=named):
            ask(batch())
    for step in (fn, nnx.jit(fn)):
        with pytest.raises(PlanError, match=named) as caught:
            instrument(step, ALL).plan(batch())
        assert isinstance(caught.value.__cause__, ClosedOverState)
    # Uncompiled, the step works without us: it costs the analyses only.
    faults = instrument(fn, [Activations])(batch())[1].faults
    assert "model: Net" in faults["activations"].message


@pytest.mark.slow  # Compiles a training step and an evaluation.
def test_thirty_steps_are_the_same_to_the_last_bit() -> None:
    @nnx.jit
    def train(model: Any, x: Any) -> Any:
        value, grads = nnx.value_and_grad(lambda model: (model(x) ** 2).mean())(model)
        params = nnx.state(model, nnx.Param)
        nnx.update(model, jax.tree.map(lambda p, g: p - 0.01 * g, params, grads))
        return value

    def run(step: Any) -> Any:
        (model, metrics), losses = made(), []
        for number in range(30):
            losses.append(train(model, batch()))
            if step and number % 5 == 4:
                still = nnx.view(model, deterministic=True, use_running_average=True)
                _, values = step(still, metrics, batch())
                assert not values.faults
        kept = state_of(model)
        # The evaluations themselves are counted, with and without analyses.
        return losses, {**kept, "blocks": [b["dense"] for b in kept["blocks"].values()]}

    alone, together = run(nnx.jit(evaluate_plainly)), run(instrument(evaluate, ALL))
    jax.tree.map(np.testing.assert_array_equal, together, alone)


def evaluate_plainly(model: Any, metrics: Any, x: Any) -> Any:
    """Return what an instrumented step returns, without analyses."""
    return evaluate(model, metrics, x)["y"], instrument(lambda: 0, [])()[1]
