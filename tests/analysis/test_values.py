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
from theseus_track.errors import NotFound


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
