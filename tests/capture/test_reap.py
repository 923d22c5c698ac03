"""Each rebuilt primitive hands out the values that a slow computation gives."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.capture.same import assert_same
from theseus_track.capture import reap, tap
from theseus_track.errors import UnsupportedProgram

X = jnp.linspace(0.5, 2.0, 4)


def assert_reaps(fn, expected, *args):
    """Check the output to the last bit, and the values against a slow computation."""
    out, values = jax.jit(reap(fn))(*args)
    assert_same(out, jax.jit(fn)(*args))
    assert set(values) == set(expected)
    for name, value in values.items():
        jax.tree.map(
            partial(np.testing.assert_allclose, rtol=1e-6), value, expected[name]
        )


def test_a_tap_changes_nothing_where_nobody_reaps():
    def fn(x):
        return tap("double", jnp.sin(x), 2 * x)

    assert_same(fn(X), jnp.sin(X))
    assert_same(jax.jit(fn)(X), jax.jit(jnp.sin)(X))
    assert_same(jax.grad(lambda x: fn(x).sum())(X), jnp.cos(X))
    assert_same(jax.vmap(fn)(X), jnp.sin(X))


def test_a_value_may_be_a_tree():
    def fn(x):
        return tap("t", x, {"a": (x, 3), "none": None})

    assert_reaps(fn, {"t": {"a": (X, 3), "none": None}}, X)


def test_uses_of_one_name_are_numbered_in_program_order():
    def fn(x):
        for i in range(3):
            x = tap("x", x * 2, i)
        return x

    assert_reaps(fn, {"x": 0, "x#1": 1, "x#2": 2}, X)


def test_jit():
    @jax.jit
    def inner(x):
        return tap("in", x * 2, x.sum())

    assert_reaps(lambda x: inner(x) + 1, {"in": np.sum(X)}, X)


def test_without_compilation_the_values_are_the_same():
    @jax.jit
    def inner(x):
        return tap("in", x * 2, x.sum())

    def fn(x):
        x = tap("out", x, 3 * x)
        return jax.lax.cond(x[0] > 9, lambda x: tap("no", x, x), inner, x)

    out, values = reap(fn)(X)

    assert_same(out, fn(X))
    assert_same(values, {"out": 3 * X, "no": 0 * X, "in": X.sum()})


def test_jit_that_was_compiled_before():
    @jax.jit
    def inner(x):
        return tap("in", x * 2, x.sum())

    inner(X)

    assert_reaps(lambda x: inner(x) + 1, {"in": np.sum(X)}, X)


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_stacks_by_iteration(reverse):
    def fn(x):
        def body(carry, row):
            carry = tap("carry", carry * row, carry)
            return carry, carry + 1

        return jax.lax.scan(body, jnp.float32(1), x, reverse=reverse)

    rows = np.asarray(X)[::-1] if reverse else np.asarray(X)
    carries = np.concatenate([[1], np.cumprod(rows)[:-1]])
    assert_reaps(fn, {"carry": carries[::-1] if reverse else carries}, X)


def test_scan_in_scan_has_both_axes():
    def fn(x):
        def outer(carry, row):
            def inner(total, item):
                return tap("item", total + item, 10 * row + item), None

            return jax.lax.scan(inner, carry, x)

        return jax.lax.scan(outer, jnp.float32(0), x)

    assert_reaps(fn, {"item": 10 * np.asarray(X)[:, None] + np.asarray(X)}, X)


def test_map_and_fori_loop():
    def fn(x):
        y = jax.lax.map(lambda v: tap("m", v * 2, v + 1), x)
        return jax.lax.fori_loop(0, 3, lambda i, v: tap("f", v + 1, i), y)

    assert_reaps(fn, {"m": X + 1, "f": np.arange(3)}, X)


@pytest.mark.parametrize(("x", "left", "right"), [(1.0, 1.0, 0.0), (-1.0, 0.0, -2.0)])
def test_cond_gives_zero_for_the_branch_not_taken(x, left, right):
    def fn(x):
        return jax.lax.cond(
            x > 0,
            lambda x: tap("left", x * 3, x),
            lambda x: tap("right", x * 5, 2 * x),
            x,
        )

    assert_reaps(fn, {"left": left, "right": right}, jnp.float32(x))


@pytest.mark.parametrize("index", [0, 1, 2])
def test_switch(index):
    def fn(i, x):
        branches = [lambda x: tap("a", x, x), lambda x: x, lambda x: tap("c", x, 2 * x)]
        return jax.lax.switch(i, branches, x)

    x = np.asarray(X)
    expected = {"a": x * (index == 0), "c": 2 * x * (index == 2)}
    assert_reaps(fn, expected, jnp.int32(index), X)


def test_while_gives_the_last_value():
    def fn(x):
        def body(state):
            i, x = state
            return i + 1, tap("x", x * 2, x)

        return jax.lax.while_loop(lambda s: s[0] < 3, body, (jnp.int32(0), x))

    assert_reaps(fn, {"x": 4 * X}, X)


def test_a_branch_inside_a_while_loop_gives_the_last_value_reached():
    def fn(x):
        def body(i):
            return jax.lax.cond(i < 2, lambda i: tap("i", i + 1, i), lambda i: i + 1, i)

        return jax.lax.while_loop(lambda i: i < 5, body, x)

    assert_reaps(fn, {"i": 1}, jnp.int32(0))


def test_a_while_loop_with_branches_in_a_scan_keeps_shapes():
    def fn(x):
        def row(carry, n):
            def body(i):
                def odd(i):
                    return tap("odd", i + 1, jnp.stack([i, 10 * n]))

                return jax.lax.cond(i % 2 == 1, odd, lambda i: i + 1, i)

            return carry, jax.lax.while_loop(lambda i: i < n, body, jnp.int32(0))

        return jax.lax.scan(row, jnp.int32(0), x)

    expected = [[0, 0], [1, 20], [1, 30], [3, 40]]
    assert_reaps(fn, {"odd": expected}, jnp.arange(1, 5))


@pytest.mark.parametrize(
    "policy", [None, jax.checkpoint_policies.dots_saveable, "everything"]
)
@pytest.mark.parametrize("differentiate", [False, True])
def test_remat_counts_a_call_once(policy, differentiate):
    if policy == "everything":
        policy = jax.checkpoint_policies.everything_saveable

    def block(w, x):
        return tap("h", jnp.sin(jnp.outer(w, x) @ x), w * 2)

    def loss(w, x):
        return jax.checkpoint(block, policy=policy)(w, x).sum()

    fn = jax.value_and_grad(loss) if differentiate else loss
    assert_reaps(fn, {"h": 2 * X}, X, X)


def test_nested_remat_of_a_scan_in_a_gradient():
    def body(carry, row):
        carry = tap("c", jnp.tanh(carry * row), carry.sum())
        return carry, None

    def loss(x):
        step = jax.checkpoint(
            lambda c, rows: jax.lax.scan(jax.checkpoint(body), c, rows)[0]
        )
        return step(x, x).sum()

    expected, carry = [], np.asarray(X)
    for row in np.asarray(X):
        expected.append(carry.sum())
        carry = np.tanh(carry * row)
    assert_reaps(jax.value_and_grad(loss), {"c": np.array(expected)}, X)


def test_vmap_puts_its_axis_first():
    def one(x, y):
        return tap("v", x.sum() * y, {"x": 2 * x, "y": y})

    def fn(x, y):
        return jax.vmap(one, in_axes=(1, None))(x, y)

    x = jnp.arange(6.0).reshape(2, 3)
    expected = {"x": 2 * np.asarray(x).T, "y": np.ones(3)}
    assert_reaps(fn, {"v": expected}, x, jnp.float32(1))


def test_nested_vmap_and_scan():
    def fn(x):
        def body(carry, row):
            return tap("r", carry + row, row * 10), None

        def total(rows):
            return jax.lax.scan(body, jnp.float32(0), rows)[0]

        return jax.vmap(jax.vmap(total))(x)

    x = jnp.arange(24.0).reshape(2, 3, 4)
    assert_reaps(fn, {"r": 10 * np.moveaxis(np.asarray(x), 2, 0)}, x)


def test_gradients_of_examples():
    def loss(w, x):
        return tap("act", jnp.tanh(w * x), x).sum()

    def fn(w, x):
        return jax.vmap(jax.grad(loss), in_axes=(None, 0))(w, x)

    x = jnp.arange(8.0).reshape(2, 4)
    assert_reaps(fn, {"act": x}, X, x)


def test_custom_derivatives_evaluated_and_differentiated():
    @jax.custom_jvp
    def f(x):
        return tap("f", jnp.sin(x), x * 2)

    f.defjvp(lambda primals, tangents: (f(*primals), 7 * tangents[0]))

    @jax.custom_vjp
    def g(x):
        return tap("g", jnp.sin(x), x * 3)

    g.defvjp(lambda x: (g(x), None), lambda _, ct: (5 * ct,))

    assert_reaps(lambda x: f(x) + g(x), {"f": 2 * X, "g": 3 * X}, X)
    assert_reaps(
        jax.value_and_grad(lambda x: (f(x) + g(x)).sum()), {"f": 2 * X, "g": 3 * X}, X
    )


def test_jvp_and_hessian():
    def f(x):
        return tap("f", x * x * x, x).sum()

    assert_reaps(lambda x: jax.jvp(f, (x,), (x,)), {"f": X}, X)
    hessian = reap(jax.hessian(f))(X)
    np.testing.assert_allclose(hessian[0], np.diag(6 * np.asarray(X)), rtol=1e-6)
    np.testing.assert_allclose(hessian[1]["f"], X)


def test_the_reaped_function_can_be_differentiated():
    def fn(x):
        return jax.lax.scan(lambda c, r: (tap("c", c * r, c), None), jnp.float32(1), x)[
            0
        ]

    gradient, _ = jax.grad(reap(fn), has_aux=True)(X)

    np.testing.assert_allclose(gradient, jax.grad(fn)(X), rtol=1e-6)


def test_typed_keys_are_values_too():
    def fn(key, flag):
        key = jax.lax.cond(flag, lambda k: tap("k", k, k), lambda k: k, key)
        key, _ = jax.lax.scan(
            lambda k, _: (tap("s", jax.random.fold_in(k, 1), k), None), key, length=2
        )
        return jax.random.normal(key)

    key = jax.random.key(3)
    values = jax.jit(reap(fn))(key, True)[1]

    assert_same(jax.random.key_data(values["k"]), jax.random.key_data(key))
    assert values["s"].shape == (2,)
    assert values["s"].dtype == key.dtype


@pytest.mark.parametrize(
    ("fn", "named"),
    [
        (
            lambda x: jax.lax.custom_linear_solve(
                lambda v: tap("here", 2 * v, v), x, lambda _, b: b / 2
            ),
            "custom_linear_solve",
        ),
        (
            lambda x: jax.lax.while_loop(
                lambda v: tap("here", v, v).sum() < 99, lambda v: v * 2, x
            ),
            "while",
        ),
    ],
)
def test_where_nothing_can_be_handed_out_it_says_so(fn, named):
    with pytest.raises(UnsupportedProgram, match=f"'here'.*{named}"):
        reap(fn)(X)


def test_an_output_without_arrays_is_refused():
    with pytest.raises(TypeError, match="'text'"):
        tap("name", "text", 1)


def test_rebuilt_jit_keeps_shardings_and_donation():
    mesh = jax.make_mesh((8,), ("data",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    inner = jax.jit(
        lambda x: tap("t", x * 2, x.sum()),
        in_shardings=split,
        out_shardings=split,
        donate_argnums=0,
    )
    x = jax.device_put(jnp.arange(8.0), split)

    out, values = reap(lambda x: inner(x))(x)  # noqa: PLW0108 - a function around the jit

    assert out.sharding.is_equivalent_to(split, 1)
    assert x.is_deleted()
    assert values["t"] == 28


@pytest.fixture
def names_tell_programs_apart():
    """Else a compilation may be spared by a program with other names in it."""
    setting = "jax_compilation_cache_include_metadata_in_key"
    jax.config.update(setting, True)
    yield
    jax.config.update(setting, False)


@pytest.mark.usefixtures("names_tell_programs_apart")
def test_names_for_the_profiler_survive_rebuilding():
    def fn(x):
        with jax.named_scope("my_loop"):
            return jax.lax.scan(
                lambda c, r: (tap("c", jnp.sin(c * r), c), None), jnp.float32(1), x
            )[0]

    def names(function):
        text = jax.jit(function).lower(X).compile().as_text()
        return set(re.findall(r'op_name="([^"]*)"', text or ""))

    assert any("my_loop/while/body" in name for name in names(fn))
    assert names(fn) <= names(reap(fn))
