"""Graph nodes among the arguments change as they do under `nnx.jit`."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.capture.same import assert_same
from tests.capture.test_nnx_views import Model, batch, evaluate, made, state_of
from theseus_track.capture import Site, discover, edit, watch
from theseus_track.errors import ClosedOverState

SITES = {
    "x": Site(
        target=nnx.Linear,
        select=list,
        analyze=lambda layer, inputs: inputs.inputs.sum(),
    )
}


def step(model, rngs, metrics, x):
    """Change all that an evaluation may change, and the structure of a node too."""
    y = model(x, rngs)
    metrics.update(values=y)
    if not hasattr(metrics, "seen"):
        metrics.seen = nnx.Variable(jnp.int32(0))
    metrics.seen[...] = metrics.seen[...] + len(x)
    return y


ORDERS: dict[str, Any] = {
    "watch of nnx.jit": lambda fn: watch(nnx.jit(fn), SITES, strict=True),
    "nnx.jit of watch": lambda fn: nnx.jit(watch(fn, SITES, strict=True)),
    "watch of the simple kind": lambda fn: watch(
        nnx.jit(fn, graph_updates=False), SITES, strict=True
    ),
}


def examples():
    """Return a batch over which no variance is small: a norm would magnify rounding."""
    return jax.random.normal(jax.random.key(3), (16, 4))


def run(fn, *, count=3):
    nodes = (*made(), nnx.metrics.Average())
    nodes[2].seen = nnx.Variable(jnp.int32(0))
    outputs = [fn(*nodes, examples()) for _ in range(count)]
    return outputs, state_of(*nodes), nnx.graphdef(nodes)


def assert_close(actual, wanted, *, rtol=1e-6):
    """Compare counts and keys exactly, floats up to a fusion that has changed."""

    def close(one, two):
        exact = np.issubdtype(two.dtype, np.integer)
        np.testing.assert_allclose(one, two, rtol=0 if exact else rtol, atol=1e-6)

    jax.tree.map(close, actual, wanted)


@functools.cache
def expected():
    return run(nnx.jit(step))


@pytest.mark.slow  # Compiles an evaluation that changes everything, four ways.
@pytest.mark.parametrize("order", ORDERS)
def test_three_steps_are_those_of_nnx_jit(order):
    outputs, state, graphdef = run(ORDERS[order](step))

    assert_close([out for out, _ in outputs], expected()[0])
    assert_close(state, expected()[1])
    assert graphdef == expected()[2]
    for _, captures in outputs:
        assert list(captures["x"].values) == ["shared/dense", "shared/dense#1", "last"]


def test_three_plain_steps_are_those_of_the_plain_function():
    outputs, state, graphdef = run(watch(step, SITES, strict=True))
    plain, plain_state, plain_graphdef = run(step)

    # Exact from JAX 0.10.2 on. Before, one fusion differs, and a batch norm over three
    # rows magnifies that: `nnx.jit(step)` and `step` differ by 4e-5 in all releases.
    assert_close([out for out, _ in outputs], plain, rtol=1e-4)
    assert_close(state, plain_state)
    assert graphdef == plain_graphdef


@pytest.mark.parametrize("order", ["watch of nnx.jit", "nnx.jit of watch"])
def test_new_state_reaches_the_caller(order):
    metrics: Any = nnx.metrics.Average()

    ORDERS[order](step)(*made(), metrics, batch())

    assert metrics.seen[...] == 3


def given(partial, *nodes):
    return watch(partial(nnx.jit(evaluate), *nodes), SITES, strict=True)


PARTIALS: dict[str, Any] = {
    "of watch of nnx.jit": lambda *nodes: nnx.cached_partial(
        watch(nnx.jit(evaluate), SITES, strict=True), *nodes
    ),
    "of nnx.jit of watch": lambda *nodes: nnx.cached_partial(
        nnx.jit(watch(evaluate, SITES, strict=True)), *nodes
    ),
    "watched": functools.partial(given, nnx.cached_partial),
    "of functools, watched": functools.partial(given, functools.partial),
}


@functools.cache
def cached_expected():
    nodes = made()
    plain: Any = nnx.cached_partial(nnx.jit(evaluate), *nodes)
    return [plain(examples()) for _ in range(3)], state_of(*nodes)


@pytest.mark.slow  # Compiles a model with every kind of state, five ways.
@pytest.mark.parametrize("order", PARTIALS)
def test_cached_partial(order):
    nodes = made()
    cached = PARTIALS[order](*nodes)

    for expected_out in cached_expected()[0]:
        out, captures = cached(examples())
        assert_close(out, expected_out)
        assert list(captures["x"].values)[-1] == "last"
    assert_close(state_of(*nodes), cached_expected()[1])


def test_what_a_partial_holds_is_seen_from_shapes_and_stays():
    nodes = made()
    before = state_of(*nodes)
    for partial in (nnx.cached_partial, functools.partial):
        fn: Any = partial(nnx.jit(evaluate), *nodes)
        assert "last" in discover(fn, batch())
        assert not watch(fn, SITES).trace_abstract(batch()).faults
        assert watch(fn, SITES).lower(batch()).cost_analysis()
    assert_same(state_of(*nodes), before)


@pytest.mark.parametrize("order", ["watch of nnx.jit", "nnx.jit of watch"])
def test_exact_state_is_exactly_the_same(order):
    """Nothing here can be fused differently: all is equal to the last bit."""

    def count(model, x):
        model.shared.calls[...] = model.shared.calls[...] * 3 + 1
        return model.drop(model.last(x))

    nodes, others = made()[0], made()[0]
    watched, plain = ORDERS[order](count), nnx.jit(count)
    for _ in range(3):
        assert_same(watched(nodes, batch())[0], plain(others, batch()))
    assert_same(state_of(nodes), state_of(others))


def test_objects_stay_the_same_and_may_be_shared():
    model, rngs = made()

    def both(nodes, again, x):
        nodes["model"](x, nodes["rngs"])
        again.calls[...] = again.calls[...] + 10
        return nodes["model"].shared.calls[...], again

    kernel = model.last.kernel
    (calls, out), _ = watch(nnx.jit(both), SITES, strict=True)(
        {"model": model, "rngs": rngs}, model.shared, batch()
    )

    assert calls == model.shared.calls[...] == 12
    assert out is model.shared
    assert model.last.kernel is kernel


def test_a_node_that_is_made_in_the_function_is_returned():
    def build(model, x):
        return nnx.clone(model.last), model.last(x)

    model, _ = made()
    (copy, _), _ = watch(nnx.jit(build), SITES, strict=True)(model, batch())

    assert_same(state_of(copy), state_of(model.last))
    assert set(vars(copy)) == set(vars(model.last))


def test_parts_called_by_the_function_have_the_names_of_their_model():
    def parts(model, x):
        return model.last(model.shared.dense(x))

    assert list(discover(parts, made()[0], batch())) == ["shared/dense", "last"]


def test_a_method_that_nobody_asked_for_names_what_it_calls():
    def encode(x):
        return model.shared.encode(x)

    model, _ = made()
    model.eval()
    assert list(discover(encode, batch())) == ["dense", "norm", "drop"]


def test_methods_are_found_by_name():
    found = discover(
        evaluate, *made(), batch(), target=Model.__mro__[0], methods=("__call__",)
    )
    assert list(found) == [""]
    found = discover(evaluate, *made(), batch(), methods=("encode",))
    assert list(found) == ["shared:encode", "shared:encode#1"]


def test_shapes_alone_are_enough_and_change_nothing():
    model, rngs = made()
    before = state_of(model, rngs)
    abstract = nnx.eval_shape(lambda: Model(nnx.Rngs(0)))
    x = jax.ShapeDtypeStruct((3, 4), jnp.float32)

    for fn in (evaluate, nnx.jit(evaluate)):
        trace = watch(fn, SITES).trace_abstract(model, rngs, x)
        assert trace.out.shape == (3, 4)
        assert not trace.faults
        found = discover(fn, abstract, rngs, x, target=nnx.Linear)
        assert list(found) == ["shared/dense", "shared/dense#1", "last"]
        assert found["last"].output == x
    assert_same(state_of(model, rngs), before)


def test_static_arguments_and_donation_of_nnx_jit():
    def scaled(model, x, scale, *, name):
        assert isinstance(scale, int)
        return model.last(x) * scale + name["bias"]

    model, x = made()[0], batch()
    plain = nnx.jit(scaled, static_argnums=2)
    donating = nnx.jit(scaled, static_argnums=2, donate_argnums=1)
    watched = watch(donating, SITES, strict=True)

    out, _ = watched(model, x, 2, name={"bias": jnp.float32(1)})

    assert x.is_deleted()
    expected: Any = plain(model, batch(), 2, name={"bias": jnp.float32(1)})
    assert_same(out, expected)


def test_shardings_of_nnx_jit():
    mesh = jax.make_mesh((2,), ("data",), devices=jax.devices()[:2])
    rows = jax.NamedSharding(mesh, jax.P(None, "data"))
    whole = jax.NamedSharding(mesh, jax.P())
    fn = nnx.jit(
        lambda model, x: model.last(x), in_shardings=(whole, rows), out_shardings=rows
    )

    out, captures = watch(fn, SITES, strict=True)(made()[0], batch())

    assert out.sharding.is_equivalent_to(rows, out.ndim)
    assert list(captures["x"].values) == ["last"]


@pytest.mark.slow  # Compiles for two shapes, and evaluates fifty times.
def test_fifty_evaluations_compile_once():
    traced = []

    def counted(model, rngs, x):
        traced.append(1)
        return model(x, rngs)

    watched = watch(nnx.jit(counted), SITES, strict=True)
    nodes = made()
    watched(*nodes, batch())
    first = len(traced)
    for _ in range(50):
        watched(*nodes, batch())
    assert len(traced) == first
    # And once more for a smaller last batch.
    for _ in range(3):
        watched(*nodes, batch()[:2])
    assert len(traced) == 2 * first


def test_parameters_are_no_constants():
    watched = watch(nnx.jit(evaluate), SITES, strict=True)
    graphdef, state = nnx.split(made())
    program = jax.make_jaxpr(
        lambda state, x: watched(*nnx.merge(graphdef, state), x)[0]
    )(state, batch())
    assert all(np.size(const) < 16 for const in program.consts)


def test_lowering_changes_nothing():
    model, rngs = made()
    before = state_of(model, rngs)
    for fn in (evaluate, nnx.jit(evaluate)):
        assert watch(fn, SITES).lower(model, rngs, batch()).cost_analysis()
    assert_same(state_of(model, rngs), before)


def closing():
    model, rngs = made()
    return model, rngs, lambda x: model(x, rngs)


@pytest.mark.slow  # Traces a model in seven ways.
def test_a_changed_node_that_is_closed_over_is_named():
    _, _, fn = closing()
    # What NNX does not say: which variable it is, and of what.
    named = (
        r"model\.shared\.calls \(Variable\).*\(model: Model\).*model to it as an arg"
    )
    for ask in (
        watch(fn, SITES, strict=True),
        watch(fn, SITES).trace_abstract,
        watch(jax.jit(fn), SITES),
        watch(nnx.jit(fn), SITES, strict=True),
        nnx.jit(watch(fn, SITES)),
        functools.partial(discover, fn),
        edit(fn, {"last": lambda layer, inputs, output: output}),
    ):
        with pytest.raises(ClosedOverState, match=named):
            ask(batch())


def test_a_changed_node_is_found_wherever_it_is_closed_over():
    model, rngs = made()

    def helper(x, nodes={"parts": [model]}):  # noqa: B006 - another way to close over
        return nodes["parts"][0](x, rngs)

    def attached(x):
        model.seen = x
        return model.last(x)

    for fn, named in (
        (lambda x: helper(x) + 1, r"nodes\.shared\.calls"),
        (attached, r"model \(Model\)"),
    ):
        with pytest.raises(ClosedOverState, match=named):
            discover(fn, batch())


def test_a_changed_node_that_is_closed_over_costs_the_analyses_only():
    model, rngs, fn = closing()

    out, captures = watch(fn, SITES)(batch())

    other = made()
    np.testing.assert_allclose(out, evaluate(other[0], other[1], batch()), rtol=1e-6)
    assert "model: Model" in captures["x"].fault.message
    assert captures["x"].fault.error is ClosedOverState
    jax.tree.map(np.testing.assert_array_equal, state_of(model, rngs), state_of(*other))
