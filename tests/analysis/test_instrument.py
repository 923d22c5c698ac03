"""instrument keeps the user's step whole and adds Values from one forward pass."""

import functools
import inspect
import itertools
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.models import Attention, Block, Normed, TinyGPT, gpt_and_variables, tokens
from theseus_track.analysis import AnalysisBase, Values, instrument
from theseus_track.errors import (
    AnalysisFault,
    BadInput,
    NotFound,
    PlanError,
    UnreachedCall,
)


class Activations(AnalysisBase):
    """The original document's analysis."""

    TARGET = Attention

    def select(self, paths: list[str]) -> Any:
        return paths[0]

    def analyze(self, layer: Any, inputs: Any) -> Any:
        return inputs.x[0, :4, :5]


class Norms(AnalysisBase):
    TARGET = Block

    def select(self, paths: list[str]) -> Any:
        return paths

    def analyze(self, layer: Any, inputs: Any) -> Any:
        return jnp.linalg.norm(inputs.output, axis=-1).mean()


class Broken(AnalysisBase):
    TARGET = Attention

    def analyze(self, layer: Any, inputs: Any) -> Any:
        raise ZeroDivisionError("by design")


def captured(model: TinyGPT, variables: Any, x: Any) -> Any:
    """Compute every module's output by Flax's own means."""
    take = jax.jit(functools.partial(model.apply, capture_intermediates=True))
    return take(variables, x)[1]["intermediates"]


def test_the_value_is_the_layers_input_and_the_output_is_untouched() -> None:
    model, variables = gpt_and_variables()
    plain = jax.jit(model.apply)(variables, tokens())
    out, values = instrument(jax.jit(model.apply), [Activations])(variables, tokens())
    np.testing.assert_array_equal(out, plain)
    inside = captured(model, variables, tokens())
    expected = inside["blocks_0"]["LayerNorm_0"]["__call__"][0][0, :4, :5]
    np.testing.assert_allclose(values["activations"], expected, rtol=1e-6)
    assert values.paths("activations") == ("blocks_0/attn",)


def test_several_paths_give_a_dict_in_program_order() -> None:
    model, variables = gpt_and_variables(layers=12)
    step = jax.jit(instrument(model.apply, [Norms]))
    _, values = step(variables, tokens())
    # blocks_10 sorts before blocks_2: the order is the program's all the same.
    assert list(values["norms"]) == [f"blocks_{i}" for i in range(12)]
    inside = captured(model, variables, tokens())
    for name, value in values["norms"].items():
        block = inside[name]["__call__"][0]
        np.testing.assert_allclose(
            value, np.linalg.norm(block, axis=-1).mean(), rtol=1e-5
        )


def test_combine_sees_all_values_after_the_forward() -> None:
    class Ratio(Norms):
        def combine(self, values: Any) -> Any:
            first, *_, last = values.values()
            return {"ratio": last / first}

    model, variables = gpt_and_variables()
    _, values = instrument(jax.jit(model.apply), [Norms, Ratio])(variables, tokens())
    norms = values["norms"]
    np.testing.assert_allclose(
        values["ratio"]["ratio"], norms["blocks_1"] / norms["blocks_0"], rtol=1e-6
    )


def test_named_tuples_keep_their_fields() -> None:
    class Moments(NamedTuple):
        mean: Any
        std: Any

    class Stats(Activations):
        def analyze(self, layer: Any, inputs: Any) -> Any:
            return Moments(inputs.x.mean(), inputs.x.std())

    model, variables = gpt_and_variables()
    _, values = instrument(jax.jit(model.apply), [Stats])(variables, tokens())
    assert values["stats"]._fields == ("mean", "std")


def test_the_signature_and_name_are_the_users() -> None:
    def eval_step(variables: Any, x: Any, *, scale: float = 2.0) -> Any:
        return variables, x, scale

    step = instrument(eval_step, [Activations])
    assert step.__name__ == "eval_step"  # type: ignore[attr-defined]
    assert inspect.signature(step) == inspect.signature(eval_step)


def test_static_and_keyword_arguments_and_string_outputs_pass_through() -> None:
    model, variables = gpt_and_variables()

    @functools.partial(jax.jit, static_argnames=("mode",))
    def eval_step(variables: Any, x: Any, *, mode: str) -> Any:
        logits: Any = model.apply(variables, x)
        return logits.sum() if mode == "sum" else logits.mean()

    step = instrument(eval_step, [Activations])
    total, _ = step(variables, tokens(), mode="sum")
    mean, _ = step(variables, tokens(), mode="mean")
    np.testing.assert_allclose(total / mean, 2 * 7 * 17, rtol=1e-4)

    def labelled(variables: Any, x: Any) -> Any:
        return model.apply(variables, x), "validation", None

    (_, label, nothing), values = instrument(labelled, [Activations])(
        variables, tokens()
    )
    assert (label, nothing) == ("validation", None)
    assert "activations" in values


def test_mutated_collections_are_those_of_the_plain_step() -> None:
    class Inputs(AnalysisBase):
        TARGET = nn.BatchNorm

        def analyze(self, layer: Any, inputs: Any) -> Any:
            # Calling the layer would update the statistics of a live one.
            return layer(inputs.x).mean(axis=0)

    model = Normed()
    x = jax.random.normal(jax.random.key(3), (4, 5))
    variables = model.init(jax.random.key(0), x)

    @jax.jit
    def eval_step(variables: Any, x: Any, key: Any) -> Any:
        return model.apply(
            variables, x, train=True, rngs={"dropout": key}, mutable=["batch_stats"]
        )

    plain = eval_step(variables, x, jax.random.key(5))
    step = instrument(eval_step, [Inputs])
    watched, values = step(variables, x, jax.random.key(5))
    jax.tree.map(np.testing.assert_array_equal, watched, plain)
    np.testing.assert_allclose(values["inputs"], np.zeros(8), atol=1e-6)


def test_a_fault_drops_one_analysis_and_rides_along() -> None:
    model, variables = gpt_and_variables()
    step = instrument(jax.jit(model.apply), [Broken, Activations])
    out, values = step(variables, tokens())
    np.testing.assert_array_equal(out, jax.jit(model.apply)(variables, tokens()))
    assert list(values) == ["activations"]
    fault = values.faults["broken"]
    assert fault.message.startswith("Analysis 'broken' failed at 'blocks_0/attn'")
    assert "ZeroDivisionError" in fault.message
    assert "by design" in fault.traceback
    with pytest.raises(NotFound, match="by design"):
        _ = values["broken"]


def test_a_method_that_is_never_called_is_named_beside_the_target() -> None:
    class Encoded(Activations):
        METHODS = ("encode",)

    model, variables = gpt_and_variables()
    step = instrument(jax.jit(model.apply), [Encoded], strict=True)
    with pytest.raises(UnreachedCall, match=r"^'encoded'.*encode.*TARGET and METHODS"):
        step(variables, tokens())


def test_strict_raises_the_fault_at_trace_time() -> None:
    model, variables = gpt_and_variables()
    step = instrument(jax.jit(model.apply), [Broken], strict=True)
    with pytest.raises(AnalysisFault, match="by design"):
        step(variables, tokens())


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (lambda x: x * 1j, "complex64"),
        (lambda _: jax.random.key(0), "key<"),
        (lambda _: "text", "str"),
        (lambda x: {"a": [x, object()]}, "['a'][1]"),
        (lambda x: jnp.zeros((1024, 1024)) + x.mean(), "4,194,304 bytes"),
    ],
)
def test_a_value_that_cannot_be_kept_is_a_fault_that_says_why(
    value: Any, said: str
) -> None:
    class Odd(Activations):
        def analyze(self, layer: Any, inputs: Any) -> Any:
            return value(inputs.x)

    model, variables = gpt_and_variables()
    _, values = instrument(jax.jit(model.apply), [Odd])(variables, tokens())
    message = values.faults["odd"].message
    assert said in message
    assert "odd" in message


def test_select_with_an_unknown_path_lists_near_matches() -> None:
    class Far(Activations):
        def select(self, paths: list[str]) -> Any:
            return "blocks_7/attn"

    model, variables = gpt_and_variables()
    _, values = instrument(jax.jit(model.apply), [Far])(variables, tokens())
    message = values.faults["far"].message
    assert "blocks_7/attn" in message
    assert "blocks_0/attn" in message


def test_only_keeps_some_and_refuses_unknown_names() -> None:
    model, variables = gpt_and_variables()
    step = instrument(jax.jit(model.apply), [Activations, Norms], only={"norms"})
    assert list(step(variables, tokens())[1]) == ["norms"]
    with pytest.raises(BadInput, match=r"'norm'.*'norms'"):
        instrument(model.apply, [Norms], only={"norm"})


def test_wrong_analyses_are_refused_at_once() -> None:
    class Same(Activations):
        NAME = "norms"

    class Aimless(AnalysisBase):
        pass

    with pytest.raises(BadInput, match=r"NAME 'norms'.*Norms.*Same"):
        instrument(len, [Norms, Same])
    with pytest.raises(BadInput, match="Aimless has no TARGET"):
        instrument(len, [Aimless])
    with pytest.raises(BadInput, match=r"Write instrument\(fn, \[A, B\]\)"):
        instrument(len, Norms)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="no analysis"):
        instrument(len, [int])  # type: ignore[list-item]


def test_instrumenting_twice_is_an_error() -> None:
    model, _ = gpt_and_variables()
    once = instrument(model.apply, [Norms])
    with pytest.raises(BadInput, match="already"):
        instrument(once, [Activations])
    with pytest.raises(BadInput, match="already"):
        instrument(jax.jit(once), [Activations])


def test_switched_off_the_function_is_untouched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("THESEUS_TRACK", "off")
    seen: list[Any] = []
    step = instrument(seen.append, [Norms])
    assert step("anything") == (None, Values())
    assert seen == ["anything"]


def test_a_predicate_target_is_not_bound_to_the_analysis() -> None:
    class Picked(Activations):
        TARGET = lambda module: isinstance(module, Attention)  # type: ignore[assignment, misc]  # noqa: E731

    model, variables = gpt_and_variables()
    _, values = instrument(jax.jit(model.apply), [Picked])(variables, tokens())
    assert values["picked"].shape == (4, 5)


def test_values_go_through_jit_scan_and_tree_map() -> None:
    model, variables = gpt_and_variables()
    step = instrument(model.apply, [Activations, Norms])
    batches = jnp.stack([tokens(), tokens() + 0])

    @jax.jit
    def over(variables: Any, batches: Any) -> Any:
        return jax.lax.scan(lambda c, x: (c, step(variables, x)[1]), 0, batches)[1]

    values = over(variables, batches)
    assert isinstance(values, Values)
    assert values["activations"].shape == (2, 4, 5)
    halved = jax.tree.map(lambda leaf: leaf / 2, values)
    np.testing.assert_allclose(
        halved["norms"]["blocks_0"], values["norms"]["blocks_0"] / 2
    )


def test_merge_uses_the_analysis_own_rule() -> None:
    class Largest(Norms):
        def merge(self, a: Any, b: Any) -> Any:
            return jax.tree.map(jnp.maximum, a, b)

    model, variables = gpt_and_variables()
    step = instrument(jax.jit(model.apply), [Norms, Largest])
    one = step(variables, tokens())[1]
    two = step(variables, (tokens() + 3) % 17)[1]
    both = one.merge(two)
    for path, value in both["largest"].items():
        np.testing.assert_array_equal(
            value, np.maximum(one["largest"][path], two["largest"][path])
        )
    np.testing.assert_array_equal(both["norms"]["blocks_0"], one["norms"]["blocks_0"])


def test_plan_prints_what_will_happen_from_shapes_alone() -> None:
    model, variables = gpt_and_variables()
    step = instrument(jax.jit(model.apply), [Activations, Norms])
    shapes = jax.eval_shape(lambda: (variables, tokens()))
    plan = step.plan(*shapes)
    assert [a.name for a in plan.analyses] == ["activations", "norms"]
    assert plan.analyses[0].leaves == {"": ((4, 5), "float32")}
    assert plan.analyses[0].bytes == 80
    assert plan.bytes == 88
    text = str(plan)
    assert "'blocks_0/attn'" in text
    assert "float32[4, 5]" in text
    assert "W&B as analysis/activations, in TensorBoard as activations" in text


def test_plan_raises_all_faults_together() -> None:
    class Nowhere(AnalysisBase):
        TARGET = nn.Conv

        def analyze(self, layer: Any, inputs: Any) -> Any:
            return inputs.output

    model, variables = gpt_and_variables()
    step = instrument(model.apply, [Broken, Nowhere, Norms])
    with pytest.raises(PlanError) as caught:
        step.plan(variables, tokens())
    text = str(caught.value)
    assert "2 of 3" in text
    assert "by design" in text
    assert "Conv" in text


def test_check_compares_bit_for_bit() -> None:
    model, variables = gpt_and_variables()
    same = instrument(jax.jit(model.apply), [Norms]).check(variables, tokens())
    assert list(same.values()) == [True]
    assert "1 of 1" in str(same)


def test_check_says_what_differs_by_how_much_and_what_was_left_out() -> None:
    calls = itertools.chain([0], itertools.repeat(1))

    def step(x: Any) -> Any:
        # Another function after the first call, as if it were fused differently.
        odd = np.float32(1e-3) * next(calls)
        y: Any = nn.Dense(2).apply(variables, x)
        exact = {"host": np.arange(3), "text": "a", "key": jax.random.key(0)}
        return {**exact, "y": (y * 0 + 2) * (1 + odd), "zero": x * (1 - 2000 * odd)}

    variables = nn.Dense(2).init(jax.random.key(0), jnp.ones((1, 2)))
    found = instrument(step, [Broken]).check(jnp.zeros((1, 2)))
    assert [path for path, same in found.items() if not same] == ["['y']", "['zero']"]
    np.testing.assert_allclose(found.off["['y']"], 1e-3, rtol=1e-3)
    assert set(found.faults) == {"broken"}
    for said in ("3 of 5", "['y'] is off by 1.0e-03", "'broken'"):
        assert said in str(found)


@pytest.mark.slow  # compiles two programs twelve layers deep
def test_flops_of_the_reference_set_stay_within_a_hundredth() -> None:
    class Crop(Activations):
        NAME = "crop"

    class Moments(Activations):
        def analyze(self, layer: Any, inputs: Any) -> Any:
            return inputs.x.mean(), inputs.x.std()

    class Outputs(Activations):
        def analyze(self, layer: Any, inputs: Any) -> Any:
            return inputs.output[0, :4, :5]

    class Norm(Activations):
        def analyze(self, layer: Any, inputs: Any) -> Any:
            return jnp.linalg.norm(inputs.output)

    model, variables = gpt_and_variables(layers=6)
    batch = tokens(batch=8, length=64)
    base: Any = jax.jit(model.apply).lower(variables, batch).compile().cost_analysis()
    step = instrument(jax.jit(model.apply), [Crop, Moments, Outputs, Norm])
    with_all = step.lower(variables, batch).compile().cost_analysis()
    assert with_all["flops"] / base["flops"] <= 1.01
