"""The contract with JAX: each primitive that is rebuilt is read, and rebuilt as it was.

A failure here and nowhere else means that JAX describes a primitive in other words
than before: `theseus_track/capture/primitives.py` is then the only file to change.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Jaxpr
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from theseus_track.capture import reap, tap
from theseus_track.capture.jitted import placement
from theseus_track.capture.primitives import (
    is_shard_map,
    opened,
    read_cond,
    read_inline,
    read_jit,
    read_remat,
    read_scan,
    read_shard_map,
    read_while,
    sub_jaxprs,
    used_inputs,
    varying,
)
from theseus_track.capture.reap import RULES
from theseus_track.errors import UnsupportedProgram

X = jnp.linspace(0.5, 2.0, 8)


def equation(fn, *args):
    """Return the one equation of a program that holds a program itself."""
    closed = jax.make_jaxpr(fn)(*args)
    (eqn,) = (eqn for eqn in closed.jaxpr.eqns if any(sub_jaxprs(eqn.params)))
    return eqn


def both(fn, *args):
    """Return the equation of a program with a tap, and the one made of it."""
    before = equation(fn, *args)
    assert is_shard_map(before) or before.primitive in RULES
    after = equation(reap(fn), *args)
    assert after.primitive is before.primitive
    return before, after


def inputs(body):
    return len(body[0].invars)


def same(before, after, *fields):
    return all(getattr(before, name) == getattr(after, name) for name in fields)


def test_jit():
    mesh = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))
    split = jax.NamedSharding(mesh, P("d"))

    def named(x, y):
        return tap("t", x * 2 + y, x), y * 3

    inner = jax.jit(
        named,
        donate_argnums=1,
        keep_unused=True,
        in_shardings=(split, None),
        out_shardings=(None, split),
    )
    before, after = map(read_jit, both(inner, X, X))

    assert before.name == "named"
    assert list(before.donated) == [False, True]
    assert before.keep_unused
    assert inputs(before.body) == 2
    assert [placement(one) for one in before.in_shardings] == [split, None]
    assert [placement(one) for one in before.out_shardings] == [None, split]
    assert list(before.in_layouts) == list(before.out_layouts) == [None, None]
    assert same(before, after, "name", "keep_unused", "inline")
    assert list(after.donated) == [False, True]
    # The value of the tap comes behind the function's own results.
    assert [placement(one) for one in after.in_shardings] == [split, None]
    assert [placement(one) for one in after.out_shardings] == [None, split, None]


def test_one_function_called_twice_is_the_same_in_both_calls():
    inner = jax.jit(lambda x: tap("t", x * 2, x))

    def fn(x):
        return inner(inner(x)) + jax.jit(lambda x: x * 3)(x)

    calls = [
        read_jit(eqn)
        for eqn in jax.make_jaxpr(fn)(X).jaxpr.eqns
        if any(sub_jaxprs(eqn.params))
    ]
    assert calls[0].same == calls[1].same != calls[2].same
    assert hash(calls[0].same) == hash(calls[1].same)


def test_checkpoint():
    policy = jax.checkpoint_policies.everything_saveable
    again = jax.checkpoint(
        lambda x: tap("t", jnp.sin(x), x), prevent_cse=False, policy=policy
    )
    before, after = map(read_remat, both(again, X))

    assert inputs(before.body) == 1
    assert before.policy is after.policy is policy
    assert before.prevent_cse == after.prevent_cse
    assert not np.any(jax.tree.leaves(before.prevent_cse))


def test_scan():
    def scan(init, rows):
        def body(carry, row):
            total, last = carry
            y = tap("t", total + X.sum() * row, row)
            return (y, row), (last, y, y)

        return jax.lax.scan(body, init, rows, reverse=True, unroll=2)

    # The sum that the body closes over is its constant.
    init = (jnp.float32(0), jnp.float32(0))
    before, after = map(read_scan, both(scan, init, X))

    assert (before.consts, before.carry, before.length) == (1, 2, 8)
    assert inputs(before.body) == 1 + 2 + 1
    assert before.reverse
    assert before.unroll == 2
    assert same(before, after, "carry", "length", "reverse", "unroll")


def test_while():
    limit, rate = jnp.float32(100), jnp.float32(2)

    def loop(x, limit, rate):
        return jax.lax.while_loop(
            lambda state: state[0] < limit,
            lambda state: (tap("t", state[0] * rate, state[1]), state[1] + 1),
            (x, jnp.float32(0)),
        )

    before, after = map(read_while, both(loop, jnp.float32(1), limit, rate))

    assert (before.condition_consts, before.body_consts) == (1, 1)
    assert inputs(before.condition) == inputs(before.body) == 1 + 2
    # The carry also holds the value and whether there is one.
    assert inputs(after.body) - after.body_consts == 2 + 2


def test_cond():
    def choose(index, x):
        return jax.lax.switch(
            index, [jnp.sin, lambda x: tap("t", jnp.cos(x), x), jnp.tan], x
        )

    before, after = map(read_cond, both(choose, 1, X))

    assert [inputs(branch) for branch in before.branches] == [1, 1, 1]
    assert [len(jaxpr.outvars) for jaxpr, _ in before.branches] == [1, 1, 1]
    # Every branch also returns the value and whether it was reached.
    assert [len(jaxpr.outvars) for jaxpr, _ in after.branches] == [3, 3, 3]


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("names", [("a", "b"), ("a",)])
def test_shard_map(names, checked):
    mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
    kinds = []

    def shard(x, y):
        kinds.append((varying(jax.typeof(x)), varying(jax.typeof(y))))
        return tap("t", x * y, x)

    fn = jax.shard_map(
        shard,
        mesh=mesh,
        in_specs=(P("a"), P()),
        out_specs=P("a"),
        axis_names=set(names),
        check_vma=checked,
    )
    before, after = map(read_shard_map, both(fn, X, X[:2]))

    assert before.mesh.axis_names == ("a", "b")
    assert dict(before.mesh.shape) == {"a": 4, "b": 2}
    assert tuple(before.in_specs) == (P("a"), P())
    assert tuple(before.out_specs) == (P("a"),)
    assert before.manual == set(names)
    assert before.checked is checked
    assert inputs(before.body) == 2
    assert same(before, after, "mesh", "manual", "checked")
    # JAX knows what differs from shard to shard only where it checks.
    assert kinds[0] == (frozenset({"a"} if checked else ()), frozenset())


def derivative(kind):
    def forward(x):
        return tap("t", x * 2, x)

    fn = kind(forward)
    if kind is jax.custom_jvp:
        fn.defjvp(lambda primals, tangents: (forward(*primals), 2 * tangents[0]))
    else:
        fn.defvjp(lambda x: (forward(x), None), lambda _, g: (2 * g,))
    return fn


@pytest.mark.parametrize("kind", [jax.custom_jvp, jax.custom_vjp])
def test_custom_derivatives_are_written_in_place(kind):
    fn = derivative(kind)
    before = equation(fn, X)
    assert before.primitive in RULES
    assert inputs(read_inline(before)) == 1

    after = jax.make_jaxpr(reap(fn))(X).jaxpr.eqns

    assert [eqn.primitive.name for eqn in after] == ["mul"]
    np.testing.assert_array_equal(reap(fn)(X)[1]["t"], X)


def test_settings_of_the_trace_are_kept():
    def fn(x):
        with jax.default_matmul_precision("float32"):
            return jax.jit(lambda x: tap("t", x @ x, x))(x)

    def precision(fn):
        (body,) = sub_jaxprs(equation(fn, X).params)
        (product,) = (e for e in body.eqns if e.primitive.name == "dot_general")
        return product.params["precision"]

    assert precision(reap(fn)) == precision(fn)


def test_a_jaxpr_comes_with_its_constants():
    closed = jax.make_jaxpr(lambda x: x + np.arange(8.0, dtype="float32"))(X)

    jaxpr, consts = opened(closed)

    assert isinstance(jaxpr, Jaxpr)
    assert len(jaxpr.constvars) == len(consts)
    result = jax.core.eval_jaxpr(jaxpr, consts, X)[0]
    np.testing.assert_array_equal(result, X + np.arange(8.0, dtype="float32"))


def test_the_inputs_that_outputs_depend_on_are_told_through_programs_inside():
    def fn(a, b, c, d):
        scanned, _ = jax.lax.scan(lambda x, row: (x + row, row * b), a, c)
        first, _ = jax.jit(lambda x, y: (x + 1, y))(scanned, d)
        return first

    one = jnp.float32(1)
    assert used_inputs(opened(jax.make_jaxpr(fn)(one, one, X, one))[0]) == [
        True,
        False,
        True,
        False,
    ]


def test_another_name_of_a_parameter_is_told():
    eqn = equation(lambda x: jax.lax.scan(lambda c, r: (c + r, r), 0.0, x), X)
    params = dict(eqn.params)
    renamed = eqn.replace(
        params={"len" if k == "length" else k: params[k] for k in params}
    )

    with pytest.raises(UnsupportedProgram) as told:
        read_scan(renamed)

    for word in ("scan", "length", jax.__version__, "README"):
        assert word in str(told.value)
