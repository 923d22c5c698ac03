"""One layer of a scanned stack, or some of them, at the price of those layers."""

import functools
import itertools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.capture.same import assert_near, assert_same
from tests.capture.twins import LAYERS, SCANNED, WIDTH, Attn, batch, transformed
from theseus_track.capture import Path, Site, discover, watch
from theseus_track.capture.primitives import read_scan
from theseus_track.errors import AnalysisFault, BadInput

STACK = f"blocks[0:{LAYERS}]/block/attn"


def analyze(layer, inputs):
    return {"x": inputs.x, "again": layer(inputs.x) * 2, "mean": inputs.output.mean()}


def taken(name, select, differentiate=False):
    """What a site takes from a scanned twin; `select` is one path or a list."""
    model, variables = transformed(name)

    def loss(variables, x):
        return (model.apply(variables, x) ** 2).sum()

    step = jax.jit(jax.value_and_grad(loss) if differentiate else loss)
    sites = {"attn": Site(target=Attn, select=lambda _: select, analyze=analyze)}
    out, captures = watch(step, sites, strict=True)(variables, batch())
    assert_near(out, step(variables, batch()))
    return captures["attn"]


@functools.cache
def stacked(name, differentiate):
    return taken(name, "blocks/block/attn", differentiate).values["blocks/block/attn"]


def assert_close(actual, expected):
    jax.tree.map(
        functools.partial(np.testing.assert_allclose, atol=2e-6), actual, expected
    )


@pytest.mark.slow  # compiles three programs for each
@pytest.mark.parametrize("differentiate", [False, True])
@pytest.mark.parametrize("name", SCANNED)
def test_layers_are_rows_of_the_stack(name, differentiate):
    paths = [f"blocks[{i}]/block/attn" for i in range(LAYERS)]
    paths += ["blocks[1:3]/block/attn", "blocks[2:3]/block/attn", "blocks/block/attn"]

    capture = taken(name, paths, differentiate)

    assert list(capture.values) == paths
    whole = stacked(name, differentiate)
    rows = [0, 1, 2, slice(1, 3), slice(2, 3), slice(None)]
    for path, row in zip(paths, rows, strict=True):
        assert_close(capture.values[path], jax.tree.map(lambda a, r=row: a[r], whole))
    assert [capture.axes[path] for path in paths] == [
        *[()] * 3,
        ("scan2",),
        ("scan1",),
        (f"scan{LAYERS}",),
    ]


def test_one_layer_is_single():
    capture = taken("scan", "blocks[1]/block/attn")
    assert capture.single
    assert capture.paths == ("blocks/block/attn",)
    assert capture.selected == ("blocks[1]/block/attn",)


def test_discovery_lists_the_stack_once_and_says_how_to_name_a_layer():
    model, variables = transformed("scan")
    found = discover(model.apply, variables, batch())
    assert found["blocks/block/attn"].layers == STACK
    assert found["blocks/block"].layers == f"blocks[0:{LAYERS}]/block"
    assert found["blocks"].layers == f"blocks[0:{LAYERS}]"
    assert found[""].layers is None
    assert list(discover(model.apply, variables, batch(), target=Attn)) == [
        "blocks/block/attn"
    ]


def test_what_is_in_no_stack_has_no_layers():
    model, variables = transformed("plain")
    found = discover(model.apply, variables, batch(), target=Attn)
    assert {call.layers for call in found.values()} == {None}


@pytest.mark.parametrize(
    ("path", "named"),
    [
        (f"blocks[{LAYERS}]/block/attn", (f"layer {LAYERS}", f"{LAYERS} layers")),
        (f"blocks[1:{LAYERS + 1}]/block/attn", (f"layer {LAYERS}", "0 to 2")),
        ("blocks/block[0]/attn", ("'blocks/block'", "no scanned stack", "blocks")),
        ("blocks[0]/block/att", ("'blocks[0]/block/att'", "blocks/block/attn")),
        ("blocks[0/block", ("'blocks[0/block'", "blocks/block/attn")),
    ],
)
def test_layers_that_there_are_not(path, named):
    with pytest.raises(AnalysisFault) as caught:
        taken("scan", path)
    assert all(text in str(caught.value) for text in named)


def test_where_nothing_is_stacked_the_fault_says_none():
    model, variables = transformed("plain")
    site = Site(target=Attn, select=lambda _: "blocks_0[1]/attn", analyze=analyze)
    watched = watch(model.apply, {"attn": site})
    fault = watched.trace_abstract(variables, batch()).faults["attn"]
    assert fault.phase == "select"
    assert "none" in fault.message


class Pair(nn.Module):
    """A layer of a stack that is a stack itself, with a branch and a second call."""

    @nn.compact
    def __call__(self, x, _):
        inner = nn.scan(
            Cell, variable_axes={"params": 0}, split_rngs={"params": True}, length=2
        )
        return inner(name="cells")(x, None)[0], None


class Cell(nn.Module):
    """One dense layer, called twice, the second time in some iterations only."""

    @nn.compact
    def __call__(self, x, _):
        dense = nn.Dense(WIDTH, name="dense")
        x = nn.tanh(dense(x))
        if self.is_initializing():
            return x, None
        return nn.cond(
            x.sum() > 0, lambda m, x: dense(x), lambda m, x: x, dense, x
        ), None


class Nested(nn.Module):
    """Stacks in a stack: outer[0:3]/cells[0:2]/dense."""

    @nn.compact
    def __call__(self, x):
        outer = nn.scan(
            Pair, variable_axes={"params": 0}, split_rngs={"params": True}, length=3
        )
        return outer(name="outer")(x, None)[0]


@functools.cache
def nested():
    model = Nested()
    return model, jax.jit(model.init)(jax.random.key(1), batch())


def looking(select):
    def seen(layer, inputs):
        return inputs.output.sum() * 2

    site = Site(target=nn.Dense, select=lambda _: select, analyze=seen)
    model, variables = nested()
    step = jax.jit(lambda v, x: model.apply(v, x).sum())
    return watch(step, {"dense": site}, strict=True)(variables, batch())[1]["dense"]


@pytest.mark.slow  # nine selections, each traced on its own
def test_stacks_in_a_stack():
    texts = ("", "[1]", "[0:2]")
    outer, inner = (None, 1, slice(0, 2)), (None, 1, slice(0, 2))
    pairs = itertools.product(
        zip(texts, outer, strict=True), zip(texts, inner, strict=True)
    )
    names, rows = [], []
    for (left, first), (right, second) in pairs:
        names.append(f"outer{left}/cells{right}/dense")
        rows.append(
            (
                slice(None) if first is None else first,
                slice(None) if second is None else second,
            )
        )

    capture = looking(names)

    whole = capture.values["outer/cells/dense"]
    assert whole.shape == (3, 2)
    assert capture.axes["outer/cells/dense"] == ("scan3", "scan2")
    for name, row in zip(names, rows, strict=True):
        assert_close(capture.values[name], whole[row])
    assert capture.axes["outer[1]/cells[0:2]/dense"] == ("scan2",)


def test_the_flag_of_a_branch_is_that_of_the_layer():
    paths = [
        "outer/cells/dense#1",
        "outer[1]/cells[1]/dense#1",
        "outer[0:2]/cells/dense#1",
    ]
    capture = looking(paths)
    whole, one, some = (capture.valid[path] for path in paths)
    assert 0 < whole.sum() < 6
    assert_same((one, some), (whole[1, 1], whole[0:2]))
    values = [capture.values[path] for path in paths]
    assert_close(values[1:], [values[0][1, 1], values[0][0:2]])


@pytest.mark.slow  # compiles a branch around a scan
def test_a_branch_around_a_stack_that_is_not_taken():
    model, variables = transformed("scan")

    def step(variables, x, flag):
        return jax.lax.cond(flag, lambda: model.apply(variables, x), lambda: x)

    paths = ["blocks[1]/block/attn", "blocks[0:2]/block/attn"]
    site = Site(target=Attn, select=lambda _: paths, analyze=analyze)
    watched = watch(jax.jit(step), {"attn": site}, strict=True)
    for flag in (True, False):
        capture = watched(variables, batch(), flag)[1]["attn"]
        assert [bool(capture.valid[path]) for path in paths] == [flag, flag]
        assert bool(capture.values[paths[0]]["mean"] != 0) == flag


def test_a_reversed_scan_counts_layers_as_the_parameters_do():
    params = jnp.arange(1.0, 5.0)
    model = nn.Dense(1, use_bias=False)

    def fn(params, x):
        def body(x, p):
            return model.apply({"params": {"kernel": p.reshape(1, 1)}}, x), None

        return jax.lax.scan(body, x, params, reverse=True)[0]

    class Outer(nn.Module):
        @nn.compact
        def __call__(self, x):
            layers = nn.scan(
                Step, variable_axes={"params": 0}, split_rngs={"params": True},
                length=4, reverse=True,
            )  # fmt: skip
            return layers(name="steps")(x, None)[0]

    class Step(nn.Module):
        @nn.compact
        def __call__(self, x, _):
            return nn.Dense(1, use_bias=False, name="dense")(x), None

    variables = {"params": {"steps": {"dense": {"kernel": params.reshape(4, 1, 1)}}}}
    site = Site(
        target=nn.Dense,
        select=lambda _: [f"steps[{i}]/dense" for i in range(4)],
        analyze=lambda layer, inputs: layer.variables["params"]["kernel"][0, 0] * 1,
    )
    x = jnp.ones((1, 1))
    out, captures = watch(Outer().apply, {"w": site}, strict=True)(variables, x)
    assert_same(out, fn(params, x))
    assert_same(
        list(captures["w"].values.values()), [jnp.float32(i) for i in (1, 2, 3, 4)]
    )


@pytest.mark.slow  # compiles two programs
def test_loops_around_the_whole_model_have_no_layers_but_keep_their_axis():
    model, variables = transformed("scan")

    def step(variables, batches):
        return jax.lax.map(lambda x: model.apply(variables, x), batches)

    batches = jnp.stack([batch(), 2 * batch()])
    found = discover(step, variables, batches, target=Attn)
    assert found["blocks/block/attn"].layers == STACK
    site = Site(target=Attn, select=lambda _: "blocks[2]/block/attn", analyze=analyze)
    capture = watch(jax.jit(step), {"attn": site}, strict=True)(variables, batches)[1][
        "attn"
    ]
    assert capture.axes == {"blocks[2]/block/attn": ("scan2",)}
    alone = taken("scan", "blocks[2]/block/attn").values["blocks[2]/block/attn"]
    assert_close(
        jax.tree.map(lambda a: a[0], capture.values["blocks[2]/block/attn"]), alone
    )


@pytest.mark.slow  # evaluates under vmap, without compilation
def test_a_mapped_stack():
    model, variables = transformed("scan")
    site = Site(target=Attn, select=lambda _: "blocks[1]/block/attn", analyze=analyze)

    def step(variables, batches):
        return jax.vmap(lambda x: model.apply(variables, x))(batches)

    capture = watch(step, {"attn": site}, strict=True)(variables, batch()[:, None])[1][
        "attn"
    ]
    assert capture.axes == {"blocks[1]/block/attn": ("vmap2",)}
    alone = taken("scan", "blocks[1]/block/attn").values["blocks[1]/block/attn"]
    assert_close(capture.values["blocks[1]/block/attn"]["x"][:, 0], alone["x"])


def heavy(layer, inputs):
    """Nine products where the layer itself needs one."""
    y = inputs.output
    for _ in range(9):
        y = y @ jnp.ones((WIDTH, WIDTH))
    return y[0, 0]


def products(jaxpr, times=1):
    """Count matrix products by how often they run: a branch once in its loop."""
    total = 0
    for eqn in jaxpr.eqns:
        inner = times * eqn.params["length"] if eqn.primitive.name == "scan" else times
        total += times * (eqn.primitive.name == "dot_general")
        branches = eqn.params.get("branches")
        if branches is not None:
            # Ours: one iteration computes, the others take the empty branch.
            total += max(products(one.jaxpr) for one in branches)
            continue
        for value in eqn.params.values():
            if hasattr(value, "eqns") or hasattr(value, "jaxpr"):
                total += products(getattr(value, "jaxpr", value), inner)
    return total


def test_one_layer_costs_one_layer():
    model, variables = transformed("scan")

    def count(paths):
        site = Site(target=Attn, select=lambda _: paths, analyze=heavy)
        watched = watch(model.apply, {"attn": site}, strict=True)
        return products(jax.make_jaxpr(watched)(variables, batch()).jaxpr)

    assert count("blocks/block/attn") == LAYERS * (1 + 9)
    assert count("blocks[1]/block/attn") == LAYERS + 9


def test_one_layer_is_returned_without_those_beside_it():
    model, variables = transformed("scan")
    site = Site(target=Attn, select=lambda _: "blocks[1]/block/attn", analyze=analyze)
    watched = watch(model.apply, {"attn": site}, strict=True)
    closed = jax.make_jaxpr(watched)(variables, batch())
    (scan,) = (eqn for eqn in closed.jaxpr.eqns if eqn.primitive.name == "scan")
    plain = jax.make_jaxpr(model.apply)(variables, batch())
    (before,) = (eqn for eqn in plain.jaxpr.eqns if eqn.primitive.name == "scan")

    def stacked_outputs(eqn):
        return len(eqn.outvars) - read_scan(eqn).carry

    assert stacked_outputs(scan) == stacked_outputs(before)


def test_shapes_and_bytes_are_those_of_what_is_taken():
    model, variables = transformed("scan")
    one = 2 * WIDTH * 4
    for chosen, rows in [("blocks[1]/block/attn", 1), ("blocks[0:2]/block/attn", 2)]:
        site = Site(
            target=Attn,
            select=functools.partial(lambda path, _: path, chosen),
            analyze=lambda layer, inputs: inputs.x * 2,
            max_bytes=one * rows,
        )
        plan = watch(model.apply, {"attn": site}).trace_abstract(variables, batch())
        assert plan.faults == {}
        (value,) = plan.captures["attn"].values.values()
        assert value.size * 4 == one * rows


@pytest.mark.slow  # compiles a recurrent layer
def test_time_steps_of_a_recurrent_cell():
    model = nn.RNN(nn.SimpleCell(features=3))
    x = jnp.linspace(-1.0, 1.0, 20).reshape(1, 5, 4)
    variables = model.init(jax.random.key(0), x)
    found = discover(model.apply, variables, x, target=nn.SimpleCell)
    ((path, call),) = found.items()
    assert call.layers == f"{path}[0:5]"
    site = Site(
        target=nn.SimpleCell,
        select=lambda _: f"{path}[4]",
        analyze=lambda layer, inputs: inputs.output[0] * 1,
    )
    out, captures = watch(model.apply, {"cell": site}, strict=True)(variables, x)
    assert_close(captures["cell"].values[f"{path}[4]"], out[:, 4])


name = st.text(min_size=1, max_size=4)
number = st.integers(min_value=0, max_value=99)
layers = (
    st.none()
    | number
    | st.tuples(number, number).map(lambda two: range(min(two), max(two) + 1))
)


@settings(deadline=None)
@given(st.lists(st.tuples(name, layers), min_size=1, max_size=4), name, number)
def test_text_and_back(steps, method, call):
    names, indices = zip(*steps, strict=True)
    some = any(one is not None for one in indices)
    path = Path(names, method, call, indices if some else ())
    assert Path.parse(str(path)) == path
    assert path.stacked == Path(names, method, call)


def test_the_grammar_of_layers():
    assert Path.parse("a[3]/b") == Path(("a", "b"), layers=(3, None))
    assert Path.parse("a[2:5]/b[0]:f#1") == Path(("a", "b"), "f", 1, (range(2, 5), 0))
    assert str(Path.parse("a[2:5]/b[0]:f#1")) == "a[2:5]/b[0]:f#1"
    assert str(Path.parse("a[2:5]/b").stacked) == "a/b"


@pytest.mark.parametrize(
    "text", ["a[3", "a]", "[3]", "a[]", "a[-1]", "a[1:1]", "a[2:1]", "a[1][2]", "a[1]b"]
)
def test_what_are_no_layers(text):
    with pytest.raises(BadInput) as caught:
        Path.parse(text)
    assert "blocks[2:5]/attn" in str(caught.value)


@pytest.mark.parametrize(
    "wrong", [(1,), (None, None), (-1, None), (range(0), None), (range(0, 4, 2), None)]
)
def test_layers_without_a_text_are_refused(wrong):
    with pytest.raises(BadInput):
        Path(("a", "b"), layers=wrong)
