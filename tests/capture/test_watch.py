"""A watched function keeps its signature, semantics and compilation."""

import enum
import inspect
import threading
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.capture.same import assert_same
from tests.capture.twins import Attn, Block, batch, plain
from tests.models import Attention, gpt_and_variables, tokens
from theseus_track.capture import Captures, Site, discover, edit, tap, watch

FIRST = Site(
    target=Attn,
    select=lambda paths: paths[0],
    analyze=lambda _, inputs: inputs.x[0],
)


class Mode(enum.Enum):
    EVAL = 1


@pytest.fixture
def compiles():
    """Count compilations of XLA while a test runs."""
    seen = []

    def listen(event: str, duration_secs: float, **_: Any) -> None:
        del duration_secs
        if event == "/jax/core/compile/backend_compile_duration":
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seen
    jax.monitoring.unregister_event_duration_listener(listen)


def test_the_output_comes_with_the_captures():
    model, variables = plain()

    out, captures = watch(model.apply, {"first": FIRST})(variables, batch())

    assert_same(out, model.apply(variables, batch()))
    assert isinstance(captures, Captures)
    site = captures["first"]
    assert list(site.values) == ["blocks_0/attn"]
    assert_same(site.values["blocks_0/attn"], batch()[0])
    assert site.paths == tuple(f"blocks_{i}/attn" for i in range(3))
    assert site.selected == ("blocks_0/attn",)
    assert site.axes == {"blocks_0/attn": ()}
    assert site.fault is None


def test_signature_and_name_are_kept():
    def eval_step(variables, x, *, train=False):
        """Evaluate."""
        return plain()[0].apply(variables, x), train

    for fn in (eval_step, jax.jit(eval_step, static_argnames="train")):
        watched = watch(fn, {"first": FIRST})

        assert watched.__name__ == "eval_step"
        assert watched.__doc__ == "Evaluate."
        assert watched.__wrapped__ is fn
        assert inspect.signature(watched) == inspect.signature(eval_step)


def test_leaves_that_are_no_arrays_pass_a_plain_function_untouched():
    model, variables = plain()
    seen = []

    def step(variables, x, mode, *, note, scale, rows, apply, nothing=None):
        assert nothing is None
        seen.append((mode, note, type(scale), type(rows)))
        return {
            "y": apply(variables, x) * scale,
            "mode": mode,
            "note": note,
            "rows": rows,
            "apply": apply,
        }

    rows = np.arange(3)
    out, captures = watch(step, {"first": FIRST})(
        variables,
        batch(),
        Mode.EVAL,
        note="text",
        scale=2.0,
        rows=rows,
        apply=model.apply,
    )

    assert set(seen) == {(Mode.EVAL, "text", float, np.ndarray)}
    assert out["mode"] is Mode.EVAL
    assert out["note"] == "text"
    assert out["rows"] is rows
    assert out["apply"] == model.apply
    assert captures.faults == {}


def test_static_arguments_of_a_jitted_function_by_position_and_name():
    model, variables = plain()

    @partial(jax.jit, static_argnums=(1,), static_argnames=("twice",))
    def step(variables, mode, x, *, twice=False, scale=1.0):
        assert isinstance(mode, str)
        assert isinstance(twice, bool)
        y = model.apply(variables, x) * scale
        return (y + y if twice else y), None

    watched = watch(step, {"first": FIRST}, strict=True)

    for call in (
        lambda f: f(variables, "eval", batch()),
        lambda f: f(variables, "eval", batch(), twice=True, scale=3.0),
        lambda f: f(variables, "eval", x=batch(), scale=jnp.float32(2)),
    ):
        out, captures = call(watched)
        assert_same(out, call(step))
        assert_same(captures["first"].values["blocks_0/attn"], batch()[0])


def test_a_jitted_function_compiles_once_and_once_more_for_an_odd_batch(compiles):
    model, variables = plain()
    site = Site(target=Attn, select=list, analyze=lambda layer, i: layer(i.x))
    step = watch(jax.jit(model.apply), {"a": site}, strict=True)
    batches = jax.block_until_ready([batch()] * 49 + [batch()[:1]])
    compiles.clear()

    for one in batches:
        _, captures = step(variables, one)
        assert captures["a"].values["blocks_0/attn"].shape == one.shape

    assert len(compiles) == 2


def test_a_plain_function_around_a_jitted_one_compiles_once(compiles):
    model, variables = plain()
    forward = jax.jit(model.apply)
    site = Site(target=Attn, select=lambda p: p[0], analyze=lambda _, i: i.output)
    step = watch(
        lambda variables, x, step: (forward(variables, x), step),
        {"a": site},
        strict=True,
    )
    x = jax.block_until_ready(batch())
    compiles.clear()

    for number in range(10):
        (_, same), _captures = step(variables, x, number)
        assert same == number

    assert len(compiles) == 1


@pytest.mark.slow  # Traces a GPT eagerly, which Flax dispatches operation by operation.
def test_parameters_are_arguments_not_constants():
    model, variables = gpt_and_variables()
    site = Site(
        target=Attention,
        select=lambda p: p,
        analyze=lambda layer, i: (
            layer(i.x).sum() + layer.variables["params"]["q"]["bias"]
        ),
    )
    for fn in (model.apply, jax.jit(model.apply)):
        closed = jax.make_jaxpr(watch(fn, {"a": site}, strict=True))(
            variables, tokens()
        )
        assert sum(np.asarray(const).nbytes for const in closed.consts) <= 1024


def test_donation_is_kept():
    model, variables = plain()
    step = jax.jit(
        lambda variables, state, x: (model.apply(variables, x).sum(), state),
        donate_argnums=1,
    )
    state = {"a": jnp.arange(4.0), "b": jnp.ones(3)}
    watched = watch(step, {"first": FIRST}, strict=True)

    (_, state_1), _ = watched(variables, state, batch())
    (_, state_2), _ = watched(variables, state_1, batch())

    assert state["a"].is_deleted()
    assert_same(state_2, {"a": jnp.arange(4.0), "b": jnp.ones(3)})


def test_shardings_are_kept_and_equal_one_device():
    model, variables = plain()
    mesh = jax.make_mesh((8,), ("data",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    x = jnp.tile(batch(), (4, 1))
    step = jax.jit(model.apply, in_shardings=(whole, split), out_shardings=split)

    out, captures = watch(step, {"first": FIRST}, strict=True)(variables, x)

    assert out.sharding.is_equivalent_to(split, out.ndim)
    np.testing.assert_allclose(out, model.apply(variables, x), rtol=1e-5)
    np.testing.assert_array_equal(captures["first"].values["blocks_0/attn"], x[0])


def test_compiler_options_are_kept():
    model, variables = plain()

    def watched(**options):
        step = jax.jit(model.apply, compiler_options=options)
        return watch(step, {"first": FIRST}, strict=True)

    out, captures = watched(xla_cpu_enable_fast_math=False)(variables, batch())

    np.testing.assert_allclose(out, model.apply(variables, batch()), rtol=1e-5)
    assert list(captures["first"].values) == ["blocks_0/attn"]
    with pytest.raises(jax.errors.JaxRuntimeError, match="xla_no_such_option"):
        watched(xla_no_such_option=True)(variables, batch())


def test_an_inlined_jit_still_works():
    model, variables = plain()
    step = jax.jit(model.apply, inline=True)

    out, captures = watch(step, {"first": FIRST}, strict=True)(variables, batch())

    assert_same(out, step(variables, batch()))
    assert_same(captures["first"].values["blocks_0/attn"], batch()[0])


def test_both_work_under_an_outer_jit():
    model, variables = plain()
    expected = jax.jit(model.apply)(variables, batch())
    for fn in (model.apply, jax.jit(model.apply)):
        out, captures = jax.jit(watch(fn, {"first": FIRST}))(variables, batch())

        np.testing.assert_allclose(out, expected, rtol=1e-6)
        assert_same(captures["first"].values["blocks_0/attn"], batch()[0])


def test_a_jitted_function_that_closes_over_a_trace_around_it():
    model, variables = plain()
    x = batch()

    @jax.jit
    def outer(scale):
        step = jax.jit(lambda: model.apply(variables, x) * scale)
        out, captures = watch(step, {"first": FIRST}, strict=True)()
        return out, captures["first"].values["blocks_0/attn"]

    for scale in (1.0, 2.0):
        out, value = outer(scale)
        np.testing.assert_allclose(out, model.apply(variables, x) * scale, atol=1e-6)
        assert_same(value, x[0])


def test_finish_runs_inside_the_program():
    model, variables = plain()

    def finish(captures):
        (value,) = captures["first"].values.values()
        assert isinstance(value, jax.core.Tracer)
        return value.sum()

    watched = watch(jax.jit(model.apply), {"first": FIRST}, finish=finish, strict=True)

    np.testing.assert_allclose(
        watched(variables, batch())[1], batch()[0].sum(), atol=1e-6
    )


def test_the_function_and_its_caches_are_as_before():
    model, variables = plain()
    jf = jax.jit(model.apply)
    ablate = edit(jf, {"blocks_1": lambda *call: 0 * call[-1]})
    untouched = jf(variables, batch())

    edited, _ = watch(ablate, {"first": FIRST}, strict=True)(variables, batch())

    assert (edited != untouched).any()
    assert_same(jf(variables, batch()), untouched)
    cold = jax.jit(lambda v, x: model.apply(v, x))  # noqa: PLW0108 - a new function
    watch(cold, {"first": FIRST})(variables, batch())
    assert "tap" not in str(cold.trace(variables, batch()).jaxpr)
    assert_same(cold(variables, batch()), untouched)


def test_sites_do_not_see_each_other():
    model, variables = plain()

    def spoil(layer, inputs):
        layer(inputs.x, {"a": 1}, [])
        inputs.extra.clear()
        inputs.rows["a"] = 0
        return inputs.x.sum()

    class Takes(nn.Module):
        @nn.compact
        def __call__(self, x, rows, extra):
            assert rows == {"a": 1}
            return Attn(name="attn")(x) + len(extra)

    model = Takes()
    args = (batch(), {"a": 1}, [1, 2])
    variables = jax.jit(lambda key: model.init(key, *args))(jax.random.key(0))
    sites = {
        "spoil": Site(target=Takes, select=list, analyze=spoil),
        "count": Site(target=Takes, select=list, analyze=lambda _, i: len(i.extra)),
        "x": Site(target=Attn, select=list, analyze=lambda layer, i: layer(i.x)),
    }
    forwards = dict(sites)
    backwards = dict(reversed(sites.items()))

    results = [
        watch(model.apply, order, strict=True)(variables, *args)
        for order in (forwards, backwards)
    ]

    assert_same(results[0][0], model.apply(variables, *args))
    assert_same(results[0][0], results[1][0])
    assert int(results[0][1]["count"].values[""]) == 2
    for name in sites:
        assert_same(results[0][1][name].values, results[1][1][name].values)
    assert args[1:] == ({"a": 1}, [1, 2])


def test_watching_twice_gives_both():
    model, variables = plain()
    second = Site(
        target=Block, select=lambda p: p[1], analyze=lambda _, i: i.output.sum()
    )
    for fn in (model.apply, jax.jit(model.apply)):
        inner = watch(fn, {"first": FIRST}, strict=True)

        (out, mine), other = watch(inner, {"second": second}, strict=True)(
            variables, batch()
        )

        assert_same(mine["first"].values["blocks_0/attn"], batch()[0])
        assert list(other["second"].values) == ["blocks_1"]
        np.testing.assert_allclose(out, model.apply(variables, batch()), rtol=1e-6)


def test_other_peoples_taps_are_left_alone():
    model, variables = plain()

    def step(variables, x):
        return tap("mine", model.apply(variables, x), x)

    out, captures = watch(jax.jit(step), {"first": FIRST}, strict=True)(
        variables, batch()
    )

    np.testing.assert_allclose(out, model.apply(variables, batch()), rtol=1e-6)
    assert list(captures) == ["first"]


def test_no_callback_is_in_the_program():
    model, variables = plain()
    text = str(
        jax.make_jaxpr(watch(jax.jit(model.apply), {"first": FIRST}))(
            variables, batch()
        )
    )
    assert "callback" not in text
    assert "tap[" not in text


def test_nothing_leaks():
    model, variables = plain()
    with jax.checking_leaks():
        for fn in (model.apply, jax.jit(model.apply)):
            _, captures = watch(fn, {"first": FIRST}, strict=True)(variables, batch())
            assert discover(fn, variables, batch(), target=Attn)
    assert_same(captures["first"].values["blocks_0/attn"], batch()[0])


def test_abstract_trace_tells_shapes_without_computing(compiles):
    model, variables = plain()
    shapes = jax.eval_shape(lambda: (variables, batch()))
    compiles.clear()
    for fn in (model.apply, jax.jit(model.apply)):
        trace = watch(fn, {"first": FIRST}).trace_abstract(*shapes)

        assert trace.out == jax.ShapeDtypeStruct((2, 4), jnp.float32)
        value = trace.captures["first"].values["blocks_0/attn"]
        assert value == jax.ShapeDtypeStruct((4,), jnp.float32)
        assert list(trace.calls["first"]) == [f"blocks_{i}/attn" for i in range(3)]
        assert trace.faults == {}
    assert not compiles


def flops_of(fn: Any, *args):
    return fn.lower(*args).compile().cost_analysis()["flops"]


def test_lowering_a_plain_function_and_a_jitted_one():
    model, variables = plain()
    plainly, jitted = (
        flops_of(watch(fn, {"first": FIRST}), variables, batch())
        for fn in (model.apply, jax.jit(model.apply))
    )
    assert plainly == jitted > 0


@pytest.mark.slow  # Compiles a GPT of four layers twice.
def test_four_cropped_analyses_cost_no_more_than_one_percent():
    model, variables = gpt_and_variables(layers=4)
    crops = {
        "inputs": lambda _, i: i.x[0, :4, :8],
        "outputs": lambda _, i: i.output[0, :4, :8],
        "again": lambda layer, i: layer(i.x)[0, :4, :8],
        "norm": lambda layer, _: jnp.linalg.norm(
            layer.variables["params"]["q"]["kernel"][:4, :4]
        ),
    }
    sites = {
        name: Site(target=Attention, select=lambda p: p[1], analyze=analyze)
        for name, analyze in crops.items()
    }
    step = jax.jit(model.apply)
    args = (variables, tokens(8, 32))

    base = flops_of(step, *args)
    watched = flops_of(watch(step, sites, strict=True), *args)

    assert 0 < watched <= 1.01 * base


def test_threads_do_not_see_each_other():
    model, variables = plain()
    results = {}

    def work(name, kind):
        site = Site(target=kind, select=lambda p: p[0], analyze=lambda _, i: i.x.sum())
        for _ in range(3):
            results[name] = watch(jax.jit(model.apply), {"s": site})(variables, batch())

    threads = [
        threading.Thread(target=work, args=(i, kind))
        for i, kind in enumerate([Attn, Block])
    ]
    for thread in threads:
        thread.start()
    for _ in range(3):
        untouched = model.apply(variables, batch())
    for thread in threads:
        thread.join()

    assert [list(results[i][1]["s"].values) for i in range(2)] == [
        ["blocks_0/attn"],
        ["blocks_0"],
    ]
    for out, _ in results.values():
        np.testing.assert_allclose(out, untouched, rtol=1e-6)


def test_captures_are_a_pytree():
    model, variables = plain()
    _, captures = watch(model.apply, {"first": FIRST})(variables, batch())

    doubled = jax.jit(lambda c: jax.tree.map(lambda x: 2 * x, c))(captures)

    assert_same(doubled["first"].values["blocks_0/attn"], 2 * batch()[0])
    assert_same(jax.tree.map(lambda x: x / 2, doubled), captures)
    ((path, _),) = jax.tree_util.tree_leaves_with_path(captures)
    assert jax.tree_util.keystr(path) == "['first'].values[0]"
