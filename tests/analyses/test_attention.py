"""The analyses of attention against Flax's own weights and hand-made patterns."""

import functools
import warnings
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.analyses.drawing import draw
from theseus_analyses.attention_entropy import AttentionEntropy
from theseus_analyses.attention_pattern import AttentionPattern
from theseus_analyses.induction_heads import InductionHeads, repeated_tokens
from theseus_track.analysis import (
    AnalysisBase,
    Heads,
    attention_adapter,
    attention_heads,
    instrument,
    is_attention,
    to_host,
)
from theseus_track.errors import BadInput, PlanError, RegistryError

WIDTH, TOKENS, BATCH = 16, 9, 3
CAUSAL = np.tril(np.ones((TOKENS, TOKENS), bool))


class Looked(AnalysisBase):
    """Everything that an adapter gives."""

    TARGET = is_attention

    def analyze(self, layer: Any, inputs: Any) -> Any:
        heads = attention_heads(layer, inputs)
        return {"weights": heads.weights, "writes": heads.writes()}


@functools.cache
def _x(dtype: Any = jnp.float32) -> Any:
    return jax.random.normal(jax.random.key(0), (BATCH, TOKENS, WIDTH), dtype)


def _linen(**options: Any) -> tuple[Any, Any]:
    model = nn.MultiHeadDotProductAttention(num_heads=4, **options)
    return model, model.init(jax.random.key(1), _x(), deterministic=True)


def _values(step: Any, *args: Any, analyses: Any) -> Any:
    return instrument(step, analyses, strict=True)(*args)[1]


def test_linen_weights_are_those_that_flax_sows_although_dropout_is_on() -> None:
    model, variables = _linen(dropout_rate=0.5, normalize_qk=True)
    mask = jnp.asarray(CAUSAL)[None, None]

    @jax.jit
    def step(variables: Any, x: Any) -> Any:
        rngs = {"dropout": jax.random.key(3)}
        return model.apply(variables, x, mask=mask, deterministic=False, rngs=rngs)

    got = _values(step, variables, _x(), analyses=[Looked])["looked"]
    out, state = model.apply(
        variables,
        _x(),
        mask=mask,
        deterministic=True,
        sow_weights=True,
        mutable=["intermediates"],
    )
    (sown,) = state["intermediates"]["attention_weights"]
    np.testing.assert_allclose(got["weights"], sown, atol=1e-6)
    assert not np.asarray(got["weights"])[..., ~CAUSAL].any()
    # Sums of float32 products of two implementations.
    bias = variables["params"]["out"]["bias"]
    np.testing.assert_allclose(got["writes"].sum(-2) + bias, out, atol=2e-6)


@pytest.mark.parametrize("groups", [4, 2, 1])
def test_nnx_weights_are_those_that_flax_sows_with_grouped_queries(
    groups: int,
) -> None:
    model = nnx.MultiHeadAttention(
        num_heads=4,
        in_features=WIDTH,
        num_kv_heads=groups,
        decode=False,
        rngs=nnx.Rngs(0),
    )
    step = nnx.jit(lambda model, x: model(x, is_causal=True))
    got = _values(step, model, _x(), analyses=[Looked])["looked"]
    with warnings.catch_warnings():
        # Newer Flax wants its own `nnx.capture` around it, which older ones lack.
        warnings.simplefilter("ignore", DeprecationWarning)
        out = model(_x(), mask=jnp.asarray(CAUSAL)[None, None], sow_weights=True)
    (sown,) = nnx.pop(model, nnx.Intermediate)["attention_weights"]
    np.testing.assert_allclose(got["weights"], sown, atol=1e-6)
    written = got["writes"].sum(-2) + jnp.asarray(model.out.bias)
    np.testing.assert_allclose(written, out, atol=2e-6)


def test_in_bfloat16_the_weights_are_as_near_as_its_eight_bits() -> None:
    model, variables = _linen(dtype=jnp.bfloat16)
    got = _values(jax.jit(model.apply), variables, _x(), analyses=[Looked])["looked"]
    exact, _ = _linen()
    full = _values(jax.jit(exact.apply), variables, _x(), analyses=[Looked])["looked"]
    weights = np.asarray(got["weights"], np.float32)
    # Scores and weights are rounded to 8 bits: 2**-8, twice.
    np.testing.assert_allclose(weights, full["weights"], atol=2**-7)


def test_heads_of_agrees_with_a_loop_in_numpy() -> None:
    keys = jax.random.split(jax.random.key(2), 4)
    query, key, value = (
        jax.random.normal(one, (2, 5, heads, 3))
        for one, heads in zip(keys, (4, 2, 2), strict=False)
    )
    bias = jax.random.normal(keys[3], (2, 4, 5, 5))
    mask = np.tril(np.ones((5, 5), bool))
    mask[2] = False
    heads = Heads.of(query, key, value, mask=jnp.asarray(mask), bias=bias, scale=0.7)
    q, k = np.asarray(query, np.float64), np.asarray(key, np.float64)
    added, weights = np.asarray(bias, np.float64), np.asarray(heads.weights)
    for sample, head, row in np.ndindex(2, 4, 5):
        scores = [q[sample, row, head] @ k[sample, j, head // 2] for j in range(5)]
        exps = np.exp(np.asarray(scores) * 0.7 + added[sample, head, row])
        exps *= mask[row]
        wanted = exps / exps.sum() if mask[row].any() else exps
        np.testing.assert_allclose(weights[sample, head, row], wanted, atol=1e-6)
    with pytest.raises(BadInput, match="output projection"):
        heads.writes()
    with pytest.raises(BadInput, match="3 query heads are no multiple of 2"):
        Heads.of(query[:, :, :3], key, value)


class Mine(nn.Module):
    """An attention of the user's own, whose weights are given from outside."""

    @nn.compact
    def __call__(self, weights: Any) -> Any:
        return weights.sum() * self.param("scale", nn.initializers.ones, ())


class Younger(Mine):
    """A subclass, which the adapter of its base serves."""


@attention_adapter(Mine)
def _look(layer: Mine, inputs: Any) -> Heads:
    nothing = jnp.zeros((1, 1, 1, 1))
    return Heads(query=nothing, key=nothing, value=nothing, weights=inputs.weights)


def _planted(weights: Any, analysis: Any) -> Any:
    model = Younger()
    variables = model.init(jax.random.key(0), weights)
    step = instrument(jax.jit(model.apply), [analysis], strict=True)
    (host,) = to_host(step(variables, weights)[1])
    return host


def test_entropy_of_uniform_and_of_one_hot_rows() -> None:
    uniform = CAUSAL / CAUSAL.sum(axis=-1, keepdims=True)
    one_hot = np.eye(TOKENS)
    host = _planted(jnp.asarray([[uniform, one_hot]], jnp.float32), AttentionEntropy)
    numbers = host.value[""]
    # Row i spreads over i + 1 keys: log(i + 1) nats.
    expected = [np.log(np.arange(1, TOKENS + 1)).mean(), 0.0]
    np.testing.assert_allclose(numbers["entropy"], expected, rtol=1e-6)
    # The one-hot rows have one key each, so that none of them is free to choose.
    np.testing.assert_allclose(numbers["coherence"], [0.0, 0.0], atol=1e-6)
    sink = [(1 / np.arange(1, TOKENS + 1)).mean(), 1 / TOKENS]
    np.testing.assert_allclose(numbers["sink"], sink, rtol=1e-6)
    parts = draw(host)
    assert [row["head"] for row in parts["heads"]] == [0, 1]
    drawn = parts["entropy"].theseus_view.arrays["values"]
    np.testing.assert_allclose(drawn, [numbers["entropy"]])


def test_coherence_is_one_minus_the_normalised_entropy() -> None:
    rows = np.random.default_rng(0).dirichlet(np.ones(TOKENS), (1, 2, TOKENS))
    host = _planted(jnp.asarray(rows, jnp.float32), AttentionEntropy)
    entropy = -(rows * np.log(rows)).sum(axis=-1)
    wanted = (1 - entropy / np.log(TOKENS)).mean(axis=(0, 2))
    np.testing.assert_allclose(host.value[""]["coherence"], wanted, rtol=1e-5)


def test_perfect_copying_heads_score_one() -> None:
    period, length = 5, 10
    rows = np.zeros((1, 3, length, length), np.float32)
    for i in range(length):
        rows[0, 0, i, max(i - 1, 0)] = 1
        rows[0, 1, i, max(i - period, 0)] = 1
        rows[0, 2, i, max(i - period + 1, 0)] = 1
    host = _planted(jnp.asarray(rows), InductionHeads)
    scores = host.value[""]
    for head, name in enumerate(("previous", "duplicate", "induction")):
        assert scores[name][head] == 1
    assert scores["induction"][1] == scores["duplicate"][0] == 0
    # Of the nine queries after the first, only that of token 1 looks back by one.
    np.testing.assert_allclose(scores["previous"][2], 1 / 9, rtol=1e-6)
    parts = draw(host)
    assert parts["heads"][0]["head"] == 2


def test_induction_refuses_a_text_that_cannot_repeat() -> None:
    step = instrument(jax.jit(Younger().apply), [InductionHeads], strict=True)
    weights = jnp.ones((1, 1, 3, 3)) / 3
    with pytest.raises(PlanError, match="3 queries and 3 keys"):
        step.plan(Younger().init(jax.random.key(0), weights), weights)


def test_repeated_tokens_repeat() -> None:
    text = np.asarray(
        repeated_tokens(jax.random.key(0), batch=2, period=6, vocabulary=50)
    )
    assert text.shape == (2, 12)
    np.testing.assert_array_equal(text[:, :6], text[:, 6:])
    assert text.min() >= 0
    assert len(np.unique(text)) > 6


class Stack(nn.Module):
    """Two residual attention layers, in a loop, in `nn.scan` and under `nn.remat`."""

    how: str

    @nn.compact
    def __call__(self, x: Any) -> Any:
        if self.how == "scan":
            scan = nn.scan(
                Layer,
                variable_axes={"params": 0},
                split_rngs={"params": True},
                length=2,
            )
            return scan(name="layers")(x, None)[0]
        layer = nn.remat(Layer) if self.how == "remat" else Layer
        for i in range(2):
            x, _ = layer(name=f"layers_{i}")(x, None)
        return x


class Layer(nn.Module):
    """One of them."""

    @nn.compact
    def __call__(self, x: Any, _: Any) -> Any:
        return x + nn.MultiHeadDotProductAttention(num_heads=2, name="attn")(x), None


@pytest.mark.parametrize("how", ["remat", "scan"])
def test_stacks_give_what_a_plain_loop_gives(how: str) -> None:
    plain = Stack("loop")
    variables = plain.init(jax.random.key(0), _x())
    layers = [variables["params"][f"layers_{i}"] for i in range(2)]
    stacked = {"layers": jax.tree.map(lambda *each: jnp.stack(each), *layers)}
    given = {"params": stacked} if how == "scan" else variables
    analyses = [AttentionEntropy, AttentionPattern]
    wanted = _values(jax.jit(plain.apply), variables, _x(), analyses=analyses)
    step = instrument(jax.jit(Stack(how).apply), analyses, strict=True)
    hosts = {host.analysis.NAME: host for host in to_host(step(given, _x())[1])}
    parts = draw(hosts["attention_entropy"])
    rows = parts["entropy"].theseus_view.arrays["values"]
    expected = [row["entropy"] for row in wanted["attention_entropy"].values()]
    np.testing.assert_allclose(rows, np.stack(expected), rtol=1e-5)
    panels = draw(hosts["attention_pattern"])
    drawn = panels.theseus_view.arrays["values"]
    np.testing.assert_allclose(drawn, wanted["attention_pattern"], atol=1e-6)


def test_a_class_without_an_adapter_and_a_second_adapter_are_named() -> None:
    assert not is_attention(nn.Dense(1))
    assert is_attention(Younger())
    with pytest.raises(BadInput, match=r"Dense has no attention adapter.*Mine"):
        attention_heads(nn.Dense(1), {})
    with pytest.raises(RegistryError, match="Mine already has an attention adapter"):
        attention_adapter(Mine)(attention_heads)
    assert attention_adapter(Mine)(_look) is _look
    with pytest.raises(BadInput, match="takes module classes"):
        attention_adapter(Mine())  # type: ignore[arg-type]


def test_a_layer_that_decodes_with_a_cache_is_refused() -> None:
    model, variables = _linen(decode=True)
    step = instrument(
        jax.jit(functools.partial(model.apply, mutable=["cache"])),
        [Looked],
        strict=True,
    )
    with pytest.raises(PlanError, match="decode=False"):
        step.plan(variables, _x()[:, :1])
