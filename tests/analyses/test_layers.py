"""The analyses of single layers against planted failures and numpy."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.analyses.drawing import draw
from tests.models import gpt_and_variables, tokens
from theseus_analyses.dead_units import DeadUnits
from theseus_analyses.feature_maps import FeatureMaps
from theseus_analyses.layers import by_layer
from theseus_analyses.nonfinite_origin import NonfiniteOrigin
from theseus_analyses.weight_spectrum import WeightSpectrum
from theseus_track.analysis import instrument, to_host
from theseus_track.errors import PlanError


class Net(nn.Module):
    """Two dense layers with a ReLU."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.Dense(3, name="down")(nn.relu(nn.Dense(8, name="up")(x)))


class NetNNX(nnx.Module):
    """The same in NNX."""

    def __init__(self, params: Any) -> None:
        self.up = nnx.Linear(4, 8, rngs=nnx.Rngs(0))
        self.down = nnx.Linear(8, 3, rngs=nnx.Rngs(0))
        for name in ("up", "down"):
            layer = getattr(self, name)
            layer.kernel[...] = params[name]["kernel"]
            layer.bias[...] = params[name]["bias"]

    def __call__(self, x: Any) -> Any:
        return self.down(nnx.relu(self.up(x)))


def _planted() -> tuple[Any, Any]:
    """Return parameters with units 1 and 5 of `up` dead, and a batch."""
    x = jax.random.normal(jax.random.key(0), (32, 4))
    params = Net().init(jax.random.key(1), x)["params"]
    params["up"]["bias"] = params["up"]["bias"].at[jnp.asarray([1, 5])].set(-1e6)
    return params, x


@pytest.fixture(scope="module")
def hosts() -> dict[str, list[Any]]:
    """Both analyses of a layer on both twins: [Linen, NNX] by name."""
    params, x = _planted()
    analyses = [DeadUnits, WeightSpectrum]
    linen = instrument(jax.jit(Net().apply), analyses, strict=True)
    twin = instrument(nnx.jit(lambda net, x: net(x)), analyses, strict=True)
    pairs = zip(
        to_host(linen({"params": params}, x)[1]),
        to_host(twin(NetNNX(params), x)[1]),
        strict=True,
    )
    return {pair[0].analysis.NAME: list(pair) for pair in pairs}


def test_exactly_the_planted_units_are_dead(hosts: Any) -> None:
    for host in hosts["dead_units"]:
        parts = draw(host)
        up = parts["units"][0]
        assert (up["layer"], up["first"], up["units"]) == ("up", [1, 5], 8)
        np.testing.assert_allclose(
            parts["share"].theseus_view.arrays["y"][0], 2 / 8, rtol=1e-6
        )


def test_a_unit_is_dead_only_if_it_is_off_in_every_batch() -> None:
    params, x = _planted()
    step = instrument(jax.jit(Net().apply), [DeadUnits], strict=True)
    first, second = (step({"params": params}, each)[1] for each in (x, -x))
    (host,) = to_host(first.merge(second))
    outputs = np.concatenate([x, -x]) @ params["up"]["kernel"] + params["up"]["bias"]
    np.testing.assert_allclose(host.value["up"], outputs.max(axis=0), rtol=1e-5)


def test_singular_values_and_ranks_agree_with_numpy(hosts: Any) -> None:
    params, _ = _planted()
    for host in hosts["weight_spectrum"]:
        table = draw(host)["matrices"]
        for row in table:
            kernel = np.asarray(params[row["layer"]]["kernel"], np.float64)
            wanted = np.linalg.svd(kernel, compute_uv=False)
            np.testing.assert_allclose(host.value[row["layer"]], wanted, rtol=1e-5)
            rank = (wanted**2).sum() / wanted[0] ** 2
            np.testing.assert_allclose(row["stable_rank"], rank, rtol=1e-5)
            norms = (row["spectral_norm"], row["frobenius_norm"])
            expected = (np.linalg.norm(kernel, 2), np.linalg.norm(kernel))
            np.testing.assert_allclose(norms, expected, rtol=1e-5)


def test_an_orthogonal_matrix_has_full_stable_rank() -> None:
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    model = nn.Dense(6, use_bias=False)
    variables = {"params": {"kernel": jnp.asarray(rotation, jnp.float32)}}
    step = instrument(jax.jit(model.apply), [WeightSpectrum], strict=True)
    (host,) = to_host(step(variables, jnp.ones((1, 6)))[1])
    (row,) = draw(host)["matrices"]
    np.testing.assert_allclose(row["stable_rank"], 6, rtol=1e-5)


@pytest.mark.parametrize("planted", [None, "blocks_1"])
def test_the_module_where_nan_begins_is_named(planted: str | None) -> None:
    model, variables = gpt_and_variables()
    wanted = None
    if planted:
        variables = jax.tree.map(lambda leaf: leaf, variables)
        layer = variables["params"][planted]["attn"]["k"]
        layer["bias"] = layer["bias"].at[0].set(jnp.nan)
        wanted = f"{planted}/attn/k"
    step = instrument(jax.jit(model.apply), [NonfiniteOrigin], strict=True)
    (host,) = to_host(step(variables, tokens())[1])
    parts = draw(host)
    assert parts["origin"] == {"module": wanted}
    assert bool(parts["calls"]) == bool(planted)


def test_feature_maps_are_the_channels_of_the_first_sample() -> None:
    x = jax.random.normal(jax.random.key(0), (2, 6, 6, 1))
    model = nn.Conv(3, (3, 3))
    variables = model.init(jax.random.key(1), x)
    step = instrument(jax.jit(model.apply), [FeatureMaps], strict=True)
    out, values = step(variables, x)
    np.testing.assert_array_equal(values["feature_maps"], out[0].transpose(2, 0, 1))
    figure = draw(to_host(values)[0])
    assert figure.theseus_view.kind == "image_grid"
    flat = nn.Conv(3, (3,))
    step = instrument(jax.jit(flat.apply), [FeatureMaps], strict=True)
    with pytest.raises(PlanError, match="Select one over images"):
        step.plan(flat.init(jax.random.key(1), x[..., 0]), x[..., 0])


def test_layers_of_stacks_get_rows_of_their_own() -> None:
    values = {
        "head": {"a": np.arange(2)},
        "blocks": {"a": np.arange(4).reshape(2, 2)},
        "nested": {"a": np.arange(8).reshape(2, 2, 2)},
    }
    rows = by_layer(values, axes=1)
    assert list(rows)[:3] == ["head", "blocks (0)", "blocks (1)"]
    assert list(rows)[3:] == [f"nested ({i}) ({j})" for i in (0, 1) for j in (0, 1)]
    np.testing.assert_array_equal(rows["nested (1) (0)"]["a"], [4, 5])
