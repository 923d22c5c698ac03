"""Analyzing an NNX call leaves the run exactly as it is without analyses."""

import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from tests.capture.same import assert_same
from theseus_track.capture import Site, discover, edit, watch

WIDTH = 4


class Noisy(nnx.Module):
    """Has everything that a careless second call would change."""

    def __init__(self, rngs):
        self.dense = nnx.Linear(WIDTH, WIDTH, rngs=rngs)
        self.norm = nnx.BatchNorm(WIDTH, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.calls = nnx.Variable(jnp.float32(0))

    def encode(self, x):
        return self.drop(self.norm(self.dense(x)))

    def __call__(self, x, rngs):
        self.calls[...] = self.calls[...] + 1
        noise = jax.random.normal(rngs.noise(), x.shape)
        return self.encode(x) + noise + self.calls[...]


class Model(nnx.Module):
    """Calls one module twice, with randomness that it owns and that it is given."""

    def __init__(self, rngs):
        self.shared = Noisy(rngs)
        self.last = nnx.Linear(WIDTH, WIDTH, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x, rngs):
        x = self.shared(self.shared(x, rngs), rngs)
        return self.drop(self.last(x))


def state_of(*nodes):
    """Copy everything that nodes hold, keys as their data."""
    state = nnx.to_pure_dict(nnx.state(nodes))
    return jax.tree.map(
        lambda leaf: np.asarray(
            jax.random.key_data(leaf)
            if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
            else leaf
        ),
        state,
    )


def made() -> Any:
    return Model(nnx.Rngs(0)), nnx.Rngs(noise=1)


def batch():
    return jnp.linspace(-1, 1, 3 * WIDTH).reshape(3, WIDTH)


def evaluate(model, rngs, x):
    return model(x, rngs)


def meddle(layer, inputs):
    """Do to the layer whatever an analysis may think of."""
    outputs = [layer(inputs.x, inputs.rngs) for _ in range(2)]
    layer.encode(inputs.x)
    layer.drop(inputs.x)
    nnx.BatchNorm(WIDTH, rngs=nnx.Rngs(3))(inputs.x)
    layer.dense.kernel[...] = layer.dense.kernel[...] * 0
    layer.calls = nnx.Variable(jnp.float32(7))
    layer.note = "left here"
    inputs.rngs.noise()
    return [abs(y - inputs.output).max() for y in outputs]


MEDDLE = Site(target=Noisy, select=list, analyze=meddle)


@pytest.mark.slow  # Analyzes every kind of state four times, eagerly and compiled.
@pytest.mark.parametrize("compiled", [False, True])
def test_calling_the_layer_again_gives_the_real_output(compiled):
    step = nnx.jit(evaluate) if compiled else evaluate

    _, captures = watch(step, {"a": MEDDLE, "b": MEDDLE}, strict=True)(*made(), batch())

    for site in captures.values():
        assert list(site.values) == ["shared", "shared#1"]
        # Not exactly zero: XLA may fuse the two computations in different ways.
        np.testing.assert_allclose(jax.tree.leaves(site.values), 0, atol=1e-6)


def test_an_analysis_sees_its_own_changes_and_no_others():
    def analyze(layer, inputs):
        before = layer.dense.kernel[...].sum()
        layer.dense.kernel[...] = jnp.zeros((WIDTH, WIDTH))
        return before, layer.dense(inputs.x).sum()

    site = Site(target=Noisy, select=lambda paths: paths[0], analyze=analyze)
    model, rngs = made()

    _, captures = watch(evaluate, {"a": site, "b": site})(model, rngs, batch())

    for one in captures.values():
        before, after = one.values["shared"]
        np.testing.assert_allclose(before, model.shared.dense.kernel[...].sum(), 1e-6)
        assert after == 0


@pytest.mark.slow  # Compiles a model with every kind of state twice.
@pytest.mark.parametrize("compiled", [False, True])
def test_outputs_and_state_are_those_without_analyses(compiled):
    step: Any = nnx.jit(evaluate) if compiled else evaluate
    watched = watch(step, {"a": MEDDLE}, strict=True)
    alone, together = made(), made()
    # A batch norm over few rows magnifies what fusion changes.
    x = jax.random.normal(jax.random.key(7), (16, *batch().shape[1:]))
    for _ in range(3):
        expected = step(*alone, x)
        out, _ = watched(*together, x)
        np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-6)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6),
            state_of(*together),
            state_of(*alone),
        )
        assert nnx.graphdef(together) == nnx.graphdef(alone)


class Raises(Exception):
    pass


def touch(layer, inputs):
    layer.note = layer(*inputs.values()).shape
    return inputs.output


def fail(layer, inputs):
    touch(layer, inputs)
    raise Raises


SEVERAL = {
    "a": Site(target=Noisy, select=list, analyze=lambda _, inputs: inputs.output),
    "b": Site(target=nnx.Linear, select=list, analyze=touch),
    "fault": Site(target=Noisy, select=list, analyze=fail),
}


@pytest.mark.slow  # Compiles a training step and three evaluations.
def test_training_is_the_same_to_the_last_bit():
    @nnx.jit
    def train(model, rngs, optimizer, x):
        def loss(model, rngs):
            return (model(x, rngs) ** 2).mean()

        value, grads = nnx.value_and_grad(loss)(model, rngs)
        optimizer.update(model, grads)
        return value

    def run(evaluate):
        (model, rngs), losses = made(), []
        optimizer = nnx.Optimizer(
            model, optax.chain(optax.trace(0.9), optax.scale(-0.01)), wrt=nnx.Param
        )
        probe = nnx.clone(rngs)
        for number in range(30):
            losses.append(train(model, rngs, optimizer, batch()))
            if evaluate is not None and number % 5 == 4:
                # A mutating evaluation is made on a copy, as without analyses.
                evaluate(nnx.clone(model), probe, batch())
        return losses, state_of(model, rngs, optimizer)

    alone = run(None)
    step = nnx.jit(evaluate)
    one = watch(step, {"s": MEDDLE}, strict=True)
    for evaluation in (step, one, watch(step, SEVERAL)):
        assert_same(run(evaluation), alone)


def classes():
    found = [nnx.Module]
    for cls in found:
        found += [sub for sub in cls.__subclasses__() if sub not in found]
    return found


def everything(*nodes):
    """Describe classes and modules as they are, to the last attribute."""
    tables = {cls: dict(vars(cls)) for cls in classes()}
    parts = [
        # NNX makes its own two anew in every update.
        {key: id(value) for key, value in vars(part).items() if key[:8] != "_pytree_"}
        for _, part in nnx.iter_graph(nodes)
        if isinstance(part, nnx.Pytree)
    ]
    return tables, parts


@pytest.mark.parametrize("analyze", [touch, fail])
@pytest.mark.parametrize("given", [True, False])
def test_nothing_is_left_on_modules_and_classes(analyze, given):
    model, rngs = made()
    model.eval()
    step = evaluate if given else lambda rngs, x: model.last(model.drop(x)) + x
    args = (model, rngs, batch()) if given else (rngs, batch())
    site = Site(target=(Noisy, nnx.Linear), select=list, analyze=analyze)
    before = everything(model)

    trace = watch(step, {"s": site}).trace_abstract(*args)

    assert bool(trace.faults) == (analyze is fail)
    assert everything(model) == before


@pytest.mark.slow  # JAX keeps no traces while it checks for leaks.
@pytest.mark.parametrize("analyze", [meddle, fail])
def test_an_evaluation_leaves_and_leaks_nothing(analyze):
    model, rngs = made()
    site = Site(target=Noisy, select=list, analyze=analyze)
    before = everything(model, rngs)

    with jax.checking_leaks():
        watch(nnx.jit(evaluate), {"s": site})(model, rngs, batch())
        watch(evaluate, {"s": site})(model, rngs, batch())

    assert everything(model, rngs) == before


def test_nothing_is_left_when_the_function_fails():
    model, rngs = made()
    before = everything(model)

    def step(rngs, x):
        model.last(x)
        raise Raises

    with pytest.raises(Raises):
        watch(step, {"s": MEDDLE})(rngs, batch())

    assert everything(model) == before


def test_other_threads_are_not_seen_and_do_not_see():
    model, seen = made()[0], []
    running, done = threading.Event(), threading.Event()

    def other():
        running.wait(30)
        seen.append(nnx.Linear(WIDTH, 2, rngs=nnx.Rngs(0))(batch()).shape)
        done.set()

    def step(x):
        running.set()
        assert done.wait(30)
        return model.last(x)

    thread = threading.Thread(target=other)
    thread.start()
    found = discover(step, batch())
    thread.join()

    assert list(found) == [""]
    assert seen == [(3, 2)]


def test_two_threads_put_the_classes_back():
    model, before = made()[0], everything()
    barrier = threading.Barrier(2, timeout=30)
    found = []

    def trace(number):
        def step(x):
            barrier.wait()
            return model.last(x) * number

        found.append(list(discover(step, batch())))

    threads = [threading.Thread(target=trace, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [[""], [""]]
    assert everything() == before


class Base(nnx.Module):
    def __init__(self, rngs):
        self.dense = nnx.Linear(WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x):
        return self.dense(x)


class Derived(Base):
    def __call__(self, x):
        return 2 * super().__call__(x)


class Explicit(Base):
    def __call__(self, x):
        return 3 * Base.__call__(self, x)


def test_calling_the_method_of_the_base_class_is_no_second_call():
    for kind in (Derived, Explicit):
        found = discover(kind.__call__, kind(nnx.Rngs(0)), batch(), target=Base)
        assert list(found) == [""]
        assert found[""].cls.endswith(kind.__name__)


@pytest.mark.slow  # Runs a model with every kind of state, operation by operation.
def test_edits_see_an_isolated_view_too():
    model, rngs = made()
    other = made()
    expected = evaluate(other[0], other[1], batch())

    def rule(layer, inputs, output):
        meddle(layer, inputs)
        return output

    edited = edit(evaluate, {"shared": rule, "shared#1": rule})

    np.testing.assert_allclose(edited(model, rngs, batch()), expected, rtol=1e-6)
    jax.tree.map(np.testing.assert_array_equal, state_of(model, rngs), state_of(*other))
