"""The analyses of residual blocks against float64 numpy and known geometry."""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.analyses.drawing import draw
from tests.models import gpt_and_variables, tokens
from theseus_analyses.effective_rank import EffectiveRank
from theseus_analyses.representation_similarity import (
    RepresentationSimilarity,
    linear_cka,
)
from theseus_analyses.residual_norms import ResidualNorms
from theseus_track.analysis import AnalysisBase, instrument, to_host
from theseus_track.errors import PlanError

ANALYSES: list[Any] = [ResidualNorms, EffectiveRank, RepresentationSimilarity]


@functools.cache
def _hosts() -> dict[str, Any]:
    model, variables = gpt_and_variables(layers=3)
    step = instrument(jax.jit(model.apply), ANALYSES, strict=True)
    hosts = to_host(step(variables, tokens())[1])
    return {host.analysis.NAME: host for host in hosts}


@functools.cache
def _streams() -> list[np.ndarray]:
    """Return what each block read, and what the last one left, in float64."""
    model, variables = gpt_and_variables(layers=3)
    take = jax.jit(functools.partial(model.apply, capture_intermediates=True))
    inside = take(variables, tokens())[1]["intermediates"]
    names = ["embed", *(f"blocks_{i}" for i in range(3))]
    return [np.asarray(inside[name]["__call__"][0], np.float64) for name in names]


def test_norms_agree_with_numpy_and_the_writes_sum_to_the_stream() -> None:
    values, streams = _hosts()["residual_norms"].value, _streams()
    assert list(values) == ["blocks_0", "blocks_1", "blocks_2"]
    for row, before, after in zip(values.values(), streams, streams[1:], strict=False):
        write = after - before
        inner = (before * write).sum(-1)
        lengths = [np.linalg.norm(each, axis=-1) for each in (before, after, write)]
        np.testing.assert_allclose(row["stream"], lengths[1].mean(), rtol=1e-5)
        np.testing.assert_allclose(row["write"], lengths[2].mean(), rtol=1e-5)
        cosine = (inner / (lengths[0] * lengths[2])).mean()
        np.testing.assert_allclose(row["cosine"], cosine, atol=1e-5)


def test_ranks_agree_with_numpy() -> None:
    values, streams = _hosts()["effective_rank"].value, _streams()
    for row, after in zip(values.values(), streams[1:], strict=True):
        x = after.reshape(-1, after.shape[-1])
        p = np.linalg.svd(x - x.mean(axis=0), compute_uv=False) ** 2
        p = p / p.sum()
        p = p[p > 0]
        np.testing.assert_allclose(row["participation"], 1 / (p**2).sum(), rtol=1e-4)
        entropy = -(p * np.log(p)).sum()
        np.testing.assert_allclose(row["entropy_rank"], np.exp(entropy), rtol=1e-4)
        unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
        cosines = unit @ unit.T
        off = cosines[~np.eye(len(x), dtype=bool)].mean()
        np.testing.assert_allclose(row["cosine"], off, atol=1e-5)


@pytest.mark.parametrize(("spread", "rank"), [("isotropic", 8), ("line", 1)])
def test_ranks_of_known_geometry(spread: str, rank: int) -> None:
    key = jax.random.key(0)
    x = jax.random.normal(key, (4000, 8 if spread == "isotropic" else 1))
    x = x @ jnp.ones((x.shape[-1], 8)) if spread == "line" else x
    row = jax.jit(EffectiveRank().analyze)(None, _Returned(x))
    # 4000 samples leave the eigenvalues within some percent of each other.
    np.testing.assert_allclose(row["participation"], rank, rtol=0.02)
    np.testing.assert_allclose(row["entropy_rank"], rank, rtol=0.02)


class _Returned(dict[str, Any]):
    """Inputs of a call that returned this."""

    def __init__(self, output: Any) -> None:
        self.output = output


def _register() -> None:
    jax.tree_util.register_pytree_node(
        _Returned, lambda each: ([each.output], None), lambda _, out: _Returned(*out)
    )


_register()


def test_cka_is_one_up_to_rotation_and_scale_and_equals_the_form_of_hsic() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 6)), rng.normal(size=(60, 9))
    rotation = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    cka = jax.jit(linear_cka)
    one = cka(*(jnp.asarray(a, jnp.float32) for a in (x, 3 * x @ rotation + 7)))
    np.testing.assert_allclose(one, 1, atol=1e-5)
    # HSIC(K, L) = tr(K H L H) of Gram matrices K and L: the example-by-example form.
    centre = np.eye(60) - 1 / 60
    grams = [centre @ a @ a.T @ centre for a in (x, y)]
    wanted = (grams[0] * grams[1]).sum() / np.prod([np.linalg.norm(g) for g in grams])
    got = cka(*(jnp.asarray(a, jnp.float32) for a in (x, y)))
    np.testing.assert_allclose(got, wanted, rtol=1e-4)


def test_similarity_of_blocks_is_symmetric_with_ones_on_the_diagonal() -> None:
    host = _hosts()["representation_similarity"]
    cka = host.value["cka"]
    np.testing.assert_allclose(np.diag(cka), 1, atol=1e-5)
    np.testing.assert_allclose(cka, cka.T, atol=1e-6)
    x, y = (np.asarray(_streams()[i].reshape(-1, 16), np.float32) for i in (1, 3))
    np.testing.assert_allclose(cka[0, 2], jax.jit(linear_cka)(x, y), atol=1e-5)


def test_figures_show_the_values_and_tables_all_of_them() -> None:
    hosts = _hosts()
    parts = draw(hosts["residual_norms"])
    assert parts["blocks"][0]["block"] == "blocks_0"
    drawn = np.ravel(parts["norms"].theseus_view.arrays["y"])
    assert {float(np.float32(y)) for y in drawn} >= {
        row["write"] for row in parts["blocks"]
    }
    ranks = draw(hosts["effective_rank"])
    assert len(ranks["blocks"]) == 3
    assert ranks["ranks"].theseus_view.kind == "line"
    cka = draw(hosts["representation_similarity"])
    np.testing.assert_allclose(
        cka.theseus_view.arrays["values"],
        hosts["representation_similarity"].value["cka"],
    )


class Twin(nnx.Module):
    """Two blocks of NNX, in a list."""

    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.layers = nnx.List([TwinBlock(rngs) for _ in range(2)])

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


class TwinBlock(nnx.Module):
    """Adds what a linear layer makes of the stream."""

    def __init__(self, rngs: Any) -> None:
        self.inner = nnx.Linear(4, 4, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return x + self.inner(x)


class LinenBlock(nn.Module):
    """The same in Linen."""

    @nn.compact
    def __call__(self, x: Any, _: Any = None) -> Any:
        return x + nn.Dense(4, name="inner")(x), None


class Scanned(nn.Module):
    """The same in a scan."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        scan = nn.scan(LinenBlock, variable_axes={"params": 0}, length=2)
        return scan(name="layers")(x, None)[0]


class ScannedNorms(ResidualNorms):
    """Of a stack the blocks are declared."""

    TARGET = LinenBlock
    NAME = "residual_norms"


def test_nnx_and_scanned_linen_give_the_same_numbers() -> None:
    twin, x = Twin(), jax.random.normal(jax.random.key(0), (2, 3, 4))
    step = nnx.jit(lambda model, x: model(x))
    (host,) = to_host(instrument(step, [ResidualNorms], strict=True)(twin, x)[1])
    assert list(host.value) == ["layers/0", "layers/1"]
    rows = [layer.inner for layer in twin.layers]
    inner = {
        "kernel": jnp.stack([row.kernel[...] for row in rows]),
        "bias": jnp.stack([jnp.asarray(row.bias) for row in rows]),
    }
    variables = {"params": {"layers": {"inner": inner}}}
    scan = instrument(jax.jit(Scanned().apply), [ScannedNorms], strict=True)
    (stacked,) = to_host(scan(variables, x)[1])
    tables = [draw(each)["blocks"] for each in (host, stacked)]
    assert [row["block"] for row in tables[1]] == ["layers (0)", "layers (1)"]
    for one, other in zip(*tables, strict=True):
        for name in ("stream", "write", "cosine"):
            np.testing.assert_allclose(one[name], other[name], rtol=1e-5, atol=1e-6)


def test_a_model_without_blocks_is_told_what_to_declare() -> None:
    step = instrument(jax.jit(nn.Dense(4).apply), [ResidualNorms], strict=True)
    with pytest.raises(PlanError, match="Declare TARGET"):
        step.plan(
            {"params": {"kernel": jnp.ones((4, 4)), "bias": jnp.ones(4)}},
            jnp.ones((2, 4)),
        )
    assert issubclass(ResidualNorms, AnalysisBase)
