"""On a mesh of eight devices, values come out whole on every one of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.capture.same import assert_near, assert_same
from tests.capture.twins import LAYERS, WIDTH, Attn, transformed
from theseus_track.capture import Site, reap, tap, watch

KINDS = (AxisType.Auto, AxisType.Explicit)


def make_mesh(kind):
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(kind, kind))


def batch():
    return jnp.linspace(-1.0, 1.0, 8 * WIDTH).reshape(8, WIDTH)


def analyze(layer, inputs):
    return {"x": inputs.x * 2, "w": layer.variables["params"]["Dense_0"]["kernel"] * 2}


def sites(*paths):
    return {"attn": Site(target=Attn, select=lambda _: paths, analyze=analyze)}


@functools.cache
def alone(name, *paths):
    """The values on one device."""
    model, variables = transformed(name)
    watched = watch(jax.jit(model.apply), sites(*paths), strict=True)
    out, captures = watched(variables, batch())
    return out, jax.device_get(captures["attn"].values)


def placed(mesh, variables, *, whole=False):
    """Parameters split over "model" on their last axis, examples over "data"."""

    def split(leaf):
        spec = P() if whole else P(*[None] * (leaf.ndim - 1), "model")
        return jax.device_put(leaf, NamedSharding(mesh, spec))

    x = jax.device_put(batch(), NamedSharding(mesh, P("data")))
    return jax.tree.map(split, variables), x


def assert_whole(values, expected):
    for leaf in jax.tree.leaves(values):
        assert leaf.sharding.is_fully_replicated
        assert len(leaf.sharding.device_set) == 8
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), values, expected
    )


@pytest.mark.slow  # compiles two programs for eight devices
@pytest.mark.parametrize("context", [False, True])
@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("plain", ("blocks_0/attn",)),
        ("scan of remat", ("blocks/block/attn", "blocks[1]/block/attn")),
    ],
)
def test_split_parameters_and_examples(name, paths, context):
    model, variables = transformed(name)
    mesh = make_mesh(AxisType.Auto)
    arguments = placed(mesh, variables)
    step = jax.jit(model.apply, out_shardings=NamedSharding(mesh, P("data", "model")))
    watched = watch(step, sites(*paths), strict=True)
    if context:
        with jax.set_mesh(mesh):
            out, captures = watched(*arguments)
    else:
        out, captures = watched(*arguments)
    assert out.sharding.spec == P("data", "model")
    assert_whole(captures["attn"].values, alone(name, *paths)[1])
    np.testing.assert_allclose(out, alone(name, *paths)[0], atol=1e-5)


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("plain", ("blocks_0/attn",)),
        (
            "scan",
            ("blocks/block/attn", "blocks[1]/block/attn", "blocks[0:2]/block/attn"),
        ),
    ],
)
def test_a_mesh_with_explicit_axes(name, paths):
    model, variables = transformed(name)
    arguments = placed(make_mesh(AxisType.Explicit), variables, whole=True)
    step = jax.jit(model.apply)
    out, captures = watch(step, sites(*paths), strict=True)(*arguments)
    assert_near(out, step(*arguments))
    assert out.sharding == step(*arguments).sharding
    assert_whole(captures["attn"].values, alone(name, *paths)[1])


@pytest.mark.slow  # compiles two programs for eight devices
@pytest.mark.parametrize("kind", KINDS)
def test_a_branch_on_a_mesh(kind):
    model, variables = transformed("plain")
    variables, x = placed(make_mesh(kind), variables, whole=True)

    def step(variables, x, flag):
        return jax.lax.cond(flag, lambda: model.apply(variables, x), lambda: x)

    watched = watch(jax.jit(step), sites("blocks_0/attn"), strict=True)
    for flag in (True, False):
        capture = watched(variables, x, flag)[1]["attn"]
        expected = jax.tree.map(
            lambda leaf, flag=flag: leaf * flag, alone("plain", "blocks_0/attn")[1]
        )
        assert_whole(capture.values, expected)
        assert bool(capture.valid["blocks_0/attn"]) == flag


def test_compiled_around():
    model, variables = transformed("plain")
    arguments = placed(make_mesh(AxisType.Auto), variables)
    step = jax.jit(watch(model.apply, sites("blocks_0/attn"), strict=True))
    captures = step(*arguments)[1]
    assert_whole(captures["attn"].values, alone("plain", "blocks_0/attn")[1])


def test_without_compilation():
    model, variables = transformed("plain")
    arguments = placed(make_mesh(AxisType.Auto), variables)
    captures = watch(model.apply, sites("blocks_0/attn"), strict=True)(*arguments)[1]
    assert_whole(captures["attn"].values, alone("plain", "blocks_0/attn")[1])


@pytest.mark.parametrize("how", ["in_shardings", "argument", "set_mesh"])
def test_where_the_arguments_tell_no_mesh(how):
    model, variables = transformed("plain")
    mesh = make_mesh(AxisType.Auto)
    variables = jax.tree.map(np.asarray, variables)
    split, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())

    def inside(variables, x):
        return model.apply(variables, jax.lax.with_sharding_constraint(x, split))

    split_in = jax.jit(inside, in_shardings=(whole, split))
    step = split_in if how == "in_shardings" else jax.jit(inside)
    given = mesh if how == "argument" else None
    watched = watch(step, sites("blocks_0/attn"), strict=True, mesh=given)
    x = np.asarray(batch())
    if how == "set_mesh":
        with jax.set_mesh(mesh):
            captures = watched(variables, x)[1]
    else:
        captures = watched(variables, x)[1]
    assert_whole(captures["attn"].values, alone("plain", "blocks_0/attn")[1])


def test_one_device_after_many():
    model, variables = transformed("plain")
    watched = watch(jax.jit(model.apply), sites("blocks_0/attn"), strict=True)
    watched(*placed(make_mesh(AxisType.Auto), variables))
    values = watched(variables, batch())[1]["attn"].values
    assert {len(leaf.sharding.device_set) for leaf in jax.tree.leaves(values)} == {1}
    assert_same(jax.device_get(values), alone("plain", "blocks_0/attn")[1])


def test_donation_of_split_arguments():
    model, variables = transformed("plain")
    variables, x = placed(make_mesh(AxisType.Auto), variables)
    step = jax.jit(model.apply, donate_argnums=1, out_shardings=x.sharding)
    captures = watch(step, sites("blocks_0/attn"), strict=True)(variables, x)[1]
    assert x.is_deleted()
    assert_whole(captures["attn"].values, alone("plain", "blocks_0/attn")[1])


def eight():
    return jax.make_mesh((8,), ("shard",), axis_types=(AxisType.Auto,))


ROWS = jnp.arange(16.0).reshape(8, 2)


def mapped(function, check):
    return jax.shard_map(
        function,
        mesh=eight(),
        in_specs=(P("shard"), P()),
        out_specs=P("shard"),
        check_vma=check,
    )


@pytest.mark.parametrize("differentiate", [False, True])
@pytest.mark.parametrize("check", [True, False])
def test_shards_are_rows(check, differentiate):
    def shard(x, w):
        x = tap("local", x * w, {"x": x[0], "twice": x.sum() * 2})
        return tap("all", x, jax.lax.psum(x.sum(), "shard"))

    def fn(x, w):
        out = mapped(shard, check)(x, w)
        return out.sum() if differentiate else out

    step = jax.value_and_grad(fn) if differentiate else fn
    out, values = jax.jit(reap(step))(ROWS, jnp.float32(3))

    assert_same(out, jax.jit(step)(ROWS, jnp.float32(3)))
    np.testing.assert_allclose(values["local"]["x"], ROWS)
    np.testing.assert_allclose(values["local"]["twice"], 2 * ROWS.sum(1))
    total = 3 * ROWS.sum()
    # Unchecked, JAX does not know that all shards have the same value.
    np.testing.assert_allclose(values["all"], total if check else np.full(8, total))


@pytest.mark.parametrize("check", [True, False])
def test_a_scan_inside_and_a_branch(check):
    def shard(x, w):
        def body(carry, i):
            carry = tap("step", carry + w, carry * 2)
            return carry, None

        x = jax.lax.scan(body, x, jnp.arange(3))[0]
        return jax.lax.cond(
            x.sum() > 15, lambda x: tap("large", x * 2, x), lambda x: x * 2, x
        )

    fn = mapped(shard, check)
    out, values = jax.jit(reap(fn))(ROWS, jnp.float32(1))

    assert_same(out, jax.jit(fn)(ROWS, jnp.float32(1)))
    steps = 2 * (np.asarray(ROWS)[:, None, None] + np.arange(3)[None, :, None, None])
    np.testing.assert_allclose(values["step"], steps)
    after = np.asarray(ROWS)[:, None] + 3
    large = after.sum((1, 2), keepdims=True) > 15
    np.testing.assert_allclose(values["large"], after * large)


@pytest.mark.parametrize("check", [True, False])
def test_a_module_in_shards(check):
    model, variables = transformed("scan")

    def step(variables, x):
        return jax.shard_map(
            model.apply, mesh=eight(), in_specs=(P(), P("shard")), out_specs=P("shard"),
            check_vma=check,
        )(variables, x)  # fmt: skip

    paths = ("blocks/block/attn", "blocks[1]/block/attn")
    captures = watch(jax.jit(step), sites(*paths), strict=True)(variables, batch())[1]
    stacked, one = (captures["attn"].values[path]["x"] for path in paths)
    assert list(captures["attn"].axes.values()) == [
        ("shard8", f"scan{LAYERS}"),
        ("shard8",),
    ]
    expected = alone("scan", *paths)[1]
    np.testing.assert_allclose(one[:, 0], expected[paths[1]]["x"], atol=1e-5)
    np.testing.assert_allclose(stacked[:, 1], one, atol=1e-5)
    assert one.sharding.is_fully_replicated
