"""What goes wrong at one site costs that site only, in one clear line."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.capture.same import assert_same
from tests.capture.twins import Attn, Block, batch, plain, transformed
from theseus_track.capture import Site, discover, watch
from theseus_track.errors import (
    AnalysisFault,
    BadInput,
    UnreachedCall,
    UnsupportedProgram,
)


def site(select=lambda paths: paths[0], analyze=lambda _, i: i.x.sum(), **more):
    return Site(**{"target": Attn, "select": select, "analyze": analyze, **more})


def boom(*_):
    raise RuntimeError("boom\nand more")


FAULTS = {
    "select raises": (site(boom), "select", ["RuntimeError: boom"], AnalysisFault),
    "select None": (site(lambda _: None), "select", ["None"], AnalysisFault),
    "select nothing": (site(lambda _: []), "select", ["nothing"], AnalysisFault),
    "select an index": (site(lambda _: 0), "select", ["not 0"], AnalysisFault),
    "select indices": (site(lambda _: [0]), "select", ["0 is no path"], AnalysisFault),
    "unknown path": (
        site(lambda _: "blocks_7/attn"),
        "select",
        ["'blocks_7/attn'", "'blocks_0/attn'", "Did you mean"],
        AnalysisFault,
    ),
    "malformed path": (site(lambda _: "a[b"), "select", ["'a[b'"], AnalysisFault),
    "never called": (
        site(target=nn.Conv),
        "select",
        ["No call of Conv", "called: Attn, Block, Dense, Unrolled", "TARGET"],
        UnreachedCall,
    ),
    "method never called": (
        site(methods=("encode",)),
        "select",
        ["Attn", "encode"],
        UnreachedCall,
    ),
    "target raises": (site(target=boom), "select", ["boom"], AnalysisFault),
    "analyze raises": (
        site(analyze=boom),
        "analyze",
        ["'blocks_0/attn'", "Attn", "RuntimeError: boom"],
        AnalysisFault,
    ),
    "no such input": (
        site(analyze=lambda _, i: i.hidden),
        "analyze",
        ["'hidden'", "x, scale"],
        AnalysisFault,
    ),
    "a string": (
        site(analyze=lambda *_: {"a": ["text"]}),
        "analyze",
        ["str", "['a'][0]"],
        AnalysisFault,
    ),
    "an object array": (
        site(analyze=lambda *_: np.array([None])),
        "analyze",
        ["'blocks_0/attn'", "object"],
        AnalysisFault,
    ),
    "too large": (
        site(analyze=lambda _, i: i.x, max_bytes=31),
        "analyze",
        ["'blocks_0/attn'", "Attn", "32 bytes", "31"],
        AnalysisFault,
    ),
}


@pytest.mark.parametrize("compiled", [False, True])
def test_a_fault_costs_its_own_site(compiled):
    model, variables = plain()
    fn = jax.jit(model.apply) if compiled else model.apply
    sites = {name: fault[0] for name, fault in FAULTS.items()} | {"good": site()}

    out, captures = watch(fn, sites)(variables, batch())

    assert_same(out, fn(variables, batch()))
    assert_same(captures["good"].values, {"blocks_0/attn": batch().sum()})
    for name, (_, phase, words, _) in FAULTS.items():
        fault = captures[name].fault
        assert fault.phase == phase, name
        assert f"'{name}'" in fault.message
        assert "\n" not in fault.message
        for word in words:
            assert word.lower() in fault.message.lower(), (name, fault.message)
        assert captures[name].values == {}
    assert "RuntimeError: boom" in captures["analyze raises"].fault.traceback
    assert captures.faults.keys() == FAULTS.keys()


@pytest.mark.parametrize("name", FAULTS)
def test_strict_raises_it(name):
    model, variables = plain()
    faulty, _, words, error = FAULTS[name]

    for fn in (model.apply, jax.jit(model.apply)):
        watched = watch(fn, {name: faulty}, strict=True)
        with pytest.raises(error) as caught:
            watched(variables, batch())
        assert words[0].lower() in str(caught.value).lower()
        with pytest.raises(error):
            watched.trace_abstract(variables, batch())


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (lambda p: p[1], [1]),
        (lambda p: [p[2], p[0]], [2, 0]),
        (lambda p: (p[0], p[0], p[2]), [0, 2]),
        (lambda p: (path for path in p if "2" in path), [2]),
        (lambda p: {p[1]}, [1]),
        (lambda p: [f"{p[1]}#0"], [1]),
        (lambda p: p.pop(), [2]),
    ],
)
def test_select_may_return_text_or_any_iterable(select, expected):
    model, variables = plain()

    _, captures = watch(model.apply, {"s": site(select)})(variables, batch())

    assert captures["s"].selected == tuple(f"blocks_{i}/attn" for i in expected)
    assert list(captures["s"].values) == [f"blocks_{i}/attn" for i in sorted(expected)]
    assert len(captures["s"].paths) == 3


def test_the_limit_counts_all_layers_of_a_scan():
    model, variables = transformed("scan")
    whole = 3 * 32

    for limit, fits in ((whole, True), (whole - 1, False)):
        limited = site(analyze=lambda _, i: i.x, max_bytes=limit)
        captures = watch(model.apply, {"s": limited})(variables, batch())[1]
        assert (captures["s"].fault is None) == fits


def test_a_call_that_does_not_reach_the_output_is_no_value():
    model, variables = plain()

    @jax.jit
    def step(variables, x):
        loss = jax.checkpoint(lambda v: (model.apply(v, x), x.sum())[1])
        return jax.grad(loss, allow_int=True)(variables)

    captures = watch(step, {"s": site()})(variables, batch())[1]

    assert captures["s"].fault.phase in {"select", "trace"}
    assert captures["s"].values == {}


class Solving(nn.Module):
    @nn.compact
    def __call__(self, x):
        inner = Attn(name="inner")
        y = inner(x)
        return Attn(name="outer")(
            jax.lax.custom_linear_solve(
                lambda v: 2 * v + 0 * inner(x), y, lambda _, b: b / 2
            )
        )


def test_a_call_inside_an_unsupported_primitive():
    model = Solving()
    variables = model.init(jax.random.key(0), batch())
    sites = {"in": site(lambda p: p[1]), "out": site(lambda p: p[-1])}

    out, captures = watch(model.apply, sites)(variables, batch())

    assert_same(out, model.apply(variables, batch()))
    fault = captures["in"].fault
    assert fault.phase == "trace"
    assert "custom_linear_solve" in fault.message
    assert "Attn" in fault.message
    assert list(captures["out"].values) == ["outer"]
    with pytest.raises(UnsupportedProgram, match="custom_linear_solve"):
        watch(model.apply, {"in": sites["in"]}, strict=True)(variables, batch())


class Mute(nn.Module):
    def __call__(self):
        return "text"


class Uses(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x * len(Mute(name="mute")())


def test_a_target_that_returns_no_array_is_named():
    captures = watch(Uses().apply, {"s": site(target=Mute)})({}, jnp.ones(2, int))[1]

    assert "'mute' (Mute)" in captures["s"].fault.message


def test_a_function_that_cannot_be_traced_runs_plainly():
    model, variables = plain()

    def step(variables, x):
        y = model.apply(variables, x)
        return float(y.sum()), "fine"

    sites = {"a": site(), "b": site(target=Block)}
    out, captures = watch(step, sites)(variables, batch())

    assert out == step(variables, batch())
    for name in sites:
        assert captures[name].fault.phase == "trace"
        assert "ConcretizationTypeError" in captures[name].fault.message
    with pytest.raises(UnsupportedProgram, match="Concretization"):
        watch(step, sites, strict=True)(variables, batch())


def test_the_users_own_error_is_the_users_own():
    model, variables = plain()

    def step(variables, x):
        model.apply(variables, x)
        raise KeyError("mine")

    for fn in (step, jax.jit(step)):
        for strict in (False, True):
            with pytest.raises(KeyError, match="mine"):
                watch(fn, {"s": site()}, strict=strict)(variables, batch())


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": "Attn"},
        {"target": ()},
        {"target": (Attn, "Block")},
        {"methods": "encode"},
        {"methods": ()},
        {"max_bytes": -1},
    ],
)
def test_a_site_that_can_match_nothing_is_refused_where_it_is_made(wrong):
    with pytest.raises(BadInput):
        site(**wrong)


def test_only_functions_are_watched():
    with pytest.raises(BadInput, match="3"):
        watch(3, {})  # type: ignore[arg-type]


def test_a_broken_predicate_is_raised_by_discover():
    model, variables = plain()
    with pytest.raises(RuntimeError, match="boom"):
        discover(model.apply, variables, batch(), target=boom)
