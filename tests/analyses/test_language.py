"""The analyses of language models against optax, numpy and closed forms."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.analyses.drawing import draw
from tests.models import gpt_and_variables, tokens
from theseus_analyses.calibration import Calibration
from theseus_analyses.per_token_loss import PerTokenLoss
from theseus_track.analysis import instrument, to_host
from theseus_track.errors import PlanError


@pytest.fixture(scope="module")
def hosts() -> dict[str, Any]:
    """Both analyses of one forward pass, by name; and the logits."""
    model, variables = gpt_and_variables()
    step = instrument(jax.jit(model.apply), [PerTokenLoss, Calibration], strict=True)
    logits, values = step(variables, tokens())
    by_name = {host.analysis.NAME: host for host in to_host(values)}
    return by_name | {"logits": np.asarray(logits, np.float64)}


def test_losses_agree_with_optax_and_their_mean_is_the_loss(hosts: Any) -> None:
    host, logits, text = hosts["per_token_loss"], hosts["logits"], np.asarray(tokens())
    losses = np.asarray(
        optax.softmax_cross_entropy_with_integer_labels(
            jnp.asarray(logits[:, :-1], jnp.float32), text[:, 1:]
        )
    )
    np.testing.assert_allclose(host.value["position"], losses.mean(0), rtol=1e-5)
    np.testing.assert_allclose(host.value["sample"], losses[0], rtol=1e-5)
    np.testing.assert_allclose(host.value["position"].mean(), losses.mean(), rtol=1e-5)
    worst = draw(host)["worst"]
    flat = np.sort(losses.ravel())[::-1]
    np.testing.assert_allclose([row["loss"] for row in worst], flat, rtol=1e-5)
    for row in worst:
        # The position is that of the predicted token in the text.
        assert row["token"] == str(text[row["sample"], row["position"]])
        loss = losses[row["sample"], row["position"] - 1]
        np.testing.assert_allclose(row["loss"], loss, rtol=1e-5)


def test_bins_agree_with_numpy(hosts: Any) -> None:
    host, text = hosts["calibration"], np.asarray(tokens())
    logits = hosts["logits"][:, :-1].reshape(-1, hosts["logits"].shape[-1])
    targets = text[:, 1:].ravel()
    chances = np.exp(logits - logits.max(-1, keepdims=True))
    chances /= chances.sum(-1, keepdims=True)
    sure, right = chances.max(-1), chances.argmax(-1) == targets
    bins = np.minimum((sure * 10).astype(int), 9)
    for number in range(10):
        inside = bins == number
        assert host.value["count"][number] == inside.sum()
        np.testing.assert_allclose(
            host.value["confidence"][number], sure[inside].sum(), rtol=1e-5
        )
        assert host.value["correct"][number] == right[inside].sum()
    true = np.eye(logits.shape[-1])[targets]
    brier = ((chances - true) ** 2).sum(-1).mean()
    np.testing.assert_allclose(host.value["brier"], brier, rtol=1e-5)
    scores = draw(host)["scores"]
    gaps = [abs(sure[bins == b].sum() - right[bins == b].sum()) for b in set(bins)]
    wanted = sum(gaps) / len(targets)
    np.testing.assert_allclose(scores["expected_calibration_error"], wanted, rtol=1e-5)


class Echo(nn.Module):
    """Predicts what it is told to, with tokens beside it."""

    @nn.compact
    def __call__(self, tokens: Any, logits: Any) -> Any:
        return logits + self.param("none", nn.initializers.zeros, ())


def test_a_perfectly_calibrated_model_has_an_error_near_zero_over_batches() -> None:
    count = 20_000
    sure = np.repeat([0.6, 0.8, 0.95], count)
    rng = np.random.default_rng(0)
    right = rng.random(sure.size) < sure
    logits = np.log(np.stack([1 - sure, sure], axis=-1))[None]
    logits = np.concatenate([logits, logits[:, :1]], axis=1)
    text = np.concatenate([[0], right])[None].astype(np.int32)
    step = instrument(jax.jit(Echo().apply), [Calibration], strict=True)
    variables = {"params": {"none": jnp.zeros(())}}
    halves = [
        step(variables, text[:, part], jnp.asarray(logits[:, part], jnp.float32))[1]
        for part in (slice(0, 30_001), slice(30_000, None))
    ]
    (host,) = to_host(halves[0].merge(halves[1]))
    scores = draw(host)["scores"]
    assert scores["predictions"] == 3 * count
    # Three bins of 20000 draws: standard deviations of 0.0035 and less.
    assert scores["expected_calibration_error"] < 0.007
    wanted = (2 * np.asarray([0.6, 0.8, 0.95]) * [0.4, 0.2, 0.05]).mean()
    np.testing.assert_allclose(scores["brier"], wanted, rtol=0.02)


@pytest.mark.parametrize("analysis", [PerTokenLoss, Calibration])
def test_a_model_that_is_no_language_model_is_told_what_to_override(
    analysis: Any,
) -> None:
    step = instrument(jax.jit(nn.Dense(4).apply), [analysis], strict=True)
    variables = nn.Dense(4).init(jax.random.key(0), jnp.ones((2, 3)))
    with pytest.raises(PlanError, match=r"Override logits\(inputs\)"):
        step.plan(variables, jnp.ones((2, 3)))
    with pytest.raises(PlanError, match=r"Override tokens\(inputs\)"):
        step.plan(variables, jnp.ones((2, 3, 3)))
