"""activation_stats against float64 numpy on outputs taken by Flax's own means."""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from tests.models import gpt_and_variables, tokens
from theseus_analyses.activation_stats import STATISTICS, ActivationStats
from theseus_track.analysis import instrument, lookup, to_host


def _expected(x: np.ndarray) -> list[float]:
    x = x.astype(np.float64).ravel()
    f = x[np.isfinite(x)]
    z = f - f.mean()
    return [
        f.mean(),
        f.std(),
        np.sqrt((f**2).mean()),
        f.min(),
        f.max(),
        np.abs(f).max(),
        (x == 0).mean(),
        1 - f.size / x.size,
        (z**4).mean() / (z**2).mean() ** 2,
    ]


def test_every_number_agrees_with_float64_numpy() -> None:
    model, variables = gpt_and_variables()
    step = instrument(jax.jit(model.apply), [ActivationStats])
    _, values = step(variables, tokens())
    take = jax.jit(functools.partial(model.apply, capture_intermediates=True))
    _, state = take(variables, tokens())
    inside = state["intermediates"]
    stats = values["activation_stats"]
    assert list(stats)[:2] == ["blocks_0/attn/q", "blocks_0/attn/k"]
    assert len(stats) == 11
    for path, row in stats.items():
        node: Any = inside
        for name in path.split("/"):
            node = node[name]
        expected = _expected(np.asarray(node["__call__"][0]))
        np.testing.assert_allclose(row, expected, rtol=2e-4, atol=1e-6)


def test_zeros_and_non_finite_elements_are_counted() -> None:
    model = nn.Dense(4, use_bias=False)
    kernel = jnp.zeros((2, 4)).at[0, 0].set(jnp.inf).at[1, 1].set(2.0)
    out = instrument(model.apply, [ActivationStats])
    _, values = out({"params": {"kernel": kernel}}, jnp.ones((1, 2)))
    row = dict(zip(STATISTICS, values["activation_stats"][""].tolist(), strict=True))
    # 1 * inf + 1 * 0 is inf; the others are 2, 0, 0.
    assert (row["nonfinite"], row["zero"], row["max"]) == (0.25, 0.5, 2.0)


def test_it_is_found_by_its_installed_key_and_draws_a_figure_and_a_table() -> None:
    assert lookup("theseus/activation_stats") is ActivationStats
    model, variables = gpt_and_variables()
    _, values = instrument(jax.jit(model.apply), [ActivationStats])(variables, tokens())
    (host,) = to_host(values)
    parts = host.analysis.plot(host.value)
    assert isinstance(parts, dict)
    assert len(parts["statistics"]) == 11
    assert parts["statistics"][0]["layer"] == "blocks_0/attn/q"
    bars = parts["rms"].theseus_view.arrays["y"]
    np.testing.assert_allclose(bars, [row["rms"] for row in parts["statistics"]])
