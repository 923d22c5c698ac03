"""Values: the static part, the host form, and what is refused."""

import pickle
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from tests.models import Attention, gpt_and_variables, tokens
from theseus_track.analysis import AnalysisBase, Values, instrument, to_host
from theseus_track.errors import BadInput, NotFound


class Small(AnalysisBase):
    """Returns dtypes that plain numpy does not know."""

    TARGET = Attention

    def analyze(self, layer: Any, inputs: Any) -> Any:
        x = inputs.x[0, :2, :3]
        return {
            "bf16": x.astype(jnp.bfloat16),
            "f8": x.astype(jnp.float8_e4m3fn),
            "i4": jnp.ones(2, jnp.int4),
            "f32": x,
        }


def _values() -> Values:
    model, variables = gpt_and_variables()
    values: Values = instrument(jax.jit(model.apply), [Small])(variables, tokens())[1]
    return values


def test_small_floats_are_upcast_once_and_the_origin_is_kept() -> None:
    values = _values()
    (host,) = to_host(values)
    dtypes = {name: leaf.dtype for name, leaf in host.value.items()}
    assert dtypes == {
        "bf16": np.float32,
        "f8": np.float32,
        "i4": np.int8,
        "f32": np.float32,
    }
    assert host.origins == {"bf16": "bfloat16", "f8": "float8_e4m3fn", "i4": "int4"}
    exact = host.value["f32"].astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(host.value["bf16"], exact)


def test_values_are_a_mapping_of_names() -> None:
    values = _values()
    assert list(values) == ["small"]
    assert len(values) == 1
    assert "small" in values
    assert "large" not in values
    with pytest.raises(NotFound, match=r"'smal'.*'small'"):
        _ = values["smal"]


def test_values_cannot_be_pickled_and_say_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"run\.log"):
        pickle.dumps(_values())


def test_a_branch_that_is_not_taken_is_marked() -> None:
    class Choice(nn.Module):
        @nn.compact
        def __call__(self, x: Any, flag: Any) -> Any:
            return nn.cond(
                flag, lambda m, x: m(x), lambda m, x: 0.0 * m(x), nn.Dense(3), x
            )

    class Outputs(AnalysisBase):
        TARGET = nn.Dense

        def select(self, paths: list[str]) -> Any:
            # JAX lists the branch for False first, so the second call is ours.
            assert paths == ["Dense_0", "Dense_0#1"]
            return paths[1]

        def analyze(self, layer: Any, inputs: Any) -> Any:
            return inputs.output

    model = Choice()
    x = jnp.ones((2, 3))
    variables = model.init(jax.random.key(0), x, jnp.asarray(True))
    step = instrument(jax.jit(model.apply), [Outputs])
    taken = to_host(step(variables, x, jnp.asarray(True))[1])[0]
    skipped = to_host(step(variables, x, jnp.asarray(False))[1])[0]
    assert taken.reached
    assert not skipped.reached
    assert list(skipped.valid.values()) == [False]


class Branches(nn.Module):
    """Calls a and b, each if asked to; and c always."""

    @nn.compact
    def __call__(self, x: Any, flags: Any) -> Any:
        layers = [nn.Dense(2, name=name) for name in ("a", "b", "c")]
        if self.is_initializing():
            return sum(layer(x) for layer in layers)
        total = layers[2](x)
        for flag, layer in zip(flags, layers, strict=False):
            total += nn.cond(
                flag,
                lambda m, x, layer=layer: layer(x),
                lambda _, x: 0.0 * x,
                self,
                x,
            )
        return total


class Sums(AnalysisBase):
    TARGET = nn.Dense

    def select(self, paths: list[str]) -> Any:
        return paths

    def analyze(self, layer: Any, inputs: Any) -> Any:
        return {"sum": inputs.output.sum(0), "count": jnp.int32(1)}

    def merge(self, a: Any, b: Any) -> Any:
        return jax.tree.map(jnp.add, a, b)


class OnlyA(Sums):
    def select(self, paths: list[str]) -> Any:
        return "a"


class Total(Sums):
    def combine(self, values: Any) -> Any:
        return jax.tree.map(lambda *leaves: sum(leaves), *values.values())


class Kept(AnalysisBase):
    TARGET = nn.Dense

    def select(self, paths: list[str]) -> Any:
        return paths

    def analyze(self, layer: Any, inputs: Any) -> Any:
        return inputs.output.sum(0)


@pytest.mark.slow  # Compiles a model that branches, with four analyses.
def test_a_merge_counts_a_branch_in_the_batches_that_took_it() -> None:
    model = Branches()
    batches = np.random.default_rng(0).normal(size=(4, 3, 2)).astype(np.float32)
    flags = np.array([[False, False], [True, False], [False, False], [True, True]])
    params = model.init(jax.random.key(0), batches[0], flags[0])
    step = instrument(jax.jit(model.apply), [Sums, OnlyA, Total, Kept], strict=True)
    each = [step(params, *pair)[1] for pair in zip(batches, flags, strict=True)]
    assert each[0].paths("sums") == ("c", "a", "b")

    def by_hand(name: str, batch: int) -> Any:
        dense = params["params"][name]
        return (batches[batch] @ dense["kernel"] + dense["bias"]).sum(0)

    taken = {"a": [1, 3], "b": [3], "c": [0, 1, 2, 3]}
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        merged = each[order[0]]
        for number in order[1:]:
            merged = merged.merge(each[number])
        for path, numbers in taken.items():
            wanted = sum(by_hand(path, number) for number in numbers)
            np.testing.assert_allclose(merged["sums"][path]["sum"], wanted, rtol=1e-5)
            assert merged["sums"][path]["count"] == len(numbers)
            first = next(number for number in order if number in numbers)
            np.testing.assert_allclose(
                merged["kept"][path], by_hand(path, first), rtol=1e-5
            )
        assert merged["only_a"]["count"] == 2
        # A total of all calls is one only where all were taken.
        assert merged["total"]["count"] == 3
        total = sum(by_hand(path, 3) for path in taken)
        np.testing.assert_allclose(merged["total"]["sum"], total, rtol=1e-5)
        assert all(all(own.values()) for own in merged.valid.values())
    none = each[0].merge(each[2])
    assert none.valid["sums"] == {"a": False, "b": False}
    assert (none["sums"]["a"]["count"], none["sums"]["c"]["count"]) == (0, 2)
    some = each[1].merge(each[2])
    assert some.valid["total"] == {"a": True, "b": False}
    assert some["total"]["count"] == each[1]["total"]["count"]
    # Under jit as outside of it.
    assert jax.jit(Values.merge)(each[0], each[3])["sums"]["b"]["count"] == 1


def test_a_merge_beside_a_branch_keeps_shapes() -> None:
    class Stacks(OnlyA):
        def merge(self, a: Any, b: Any) -> Any:
            return jax.tree.map(lambda *leaves: jnp.stack(leaves), a, b)

    model, x, flags = Branches(), jnp.ones((3, 2)), jnp.ones(2, bool)
    params = model.init(jax.random.key(0), x, flags)
    values = instrument(model.apply, [Stacks])(params, x, flags)[1]
    with pytest.raises(BadInput, match=r"stacks.*shape \(\) into \(2,\)"):
        values.merge(values)
