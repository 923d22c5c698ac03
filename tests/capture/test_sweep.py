"""A sweep is the same as one edit after the other, compiled once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.capture.same import assert_same
from tests.capture.test_rules import HEADS, net
from theseus_track.capture import edit, patches, rules, sweep
from theseus_track.errors import BadInput, UnreachedCall

PATHS = ("a", "b")


def score(variables, x):
    return (net()[0](variables, x) ** 2).sum()


@pytest.mark.slow  # Each head's edit is traced apart, to compare with.
@pytest.mark.parametrize("at_once", [None, 3])
def test_ablation_of_every_head(at_once):
    _, variables, x = net()
    each = {f"{path}/out": rules.zero.on("inputs") for path in PATHS}

    found = sweep(score, each, parts=HEADS, at_once=at_once)(variables, x)

    expected = [
        [
            edit(score, {path: rule.at(head, parts=HEADS)})(variables, x)
            for head in range(HEADS)
        ]
        for path, rule in each.items()
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_activation_patching_over_layers_and_positions():
    fn, variables, clean = net()
    corrupted = clean.at[:, 1].multiply(-1)
    masks = np.concatenate([np.eye(3), np.ones((1, 3)), np.zeros((1, 3))]).astype(bool)

    sources = patches(fn, PATHS)(variables, clean)
    found = sweep(fn, sources, masks, axis=1)(variables, corrupted)

    assert found.shape == (2, 5, *clean.shape)
    # Each position is computed alone: to patch one is to bring back its clean output.
    for path in range(2):
        for position in range(3):
            expected = (
                fn(variables, corrupted)
                .at[:, position]
                .set(fn(variables, clean)[:, position])
            )
            np.testing.assert_allclose(found[path, position], expected, atol=1e-6)
        np.testing.assert_allclose(found[path, 3], fn(variables, clean), atol=1e-6)
        np.testing.assert_allclose(found[path, 4], fn(variables, corrupted), atol=1e-6)


def test_the_function_is_traced_once_for_the_whole_grid():
    fn, variables, x = net()
    traced = []

    def counted(variables, x):
        traced.append(1)
        return fn(variables, x).sum()

    def traces(paths, masks):
        traced.clear()
        sweep(counted, paths, masks)(variables, x)
        return len(traced)

    assert traces(PATHS, np.eye(4)) == traces(PATHS, np.eye(4)[:1])


def test_an_nnx_model_keeps_its_state():
    model = nnx.Sequential(
        nnx.Linear(2, 3, rngs=nnx.Rngs(0)), nnx.BatchNorm(3, rngs=nnx.Rngs(1))
    )
    x = jnp.array([[1.0, 2.0], [3.0, -1.0]])
    before = jax.tree.map(jnp.copy, nnx.to_pure_dict(nnx.state(model)))

    found = sweep(lambda model, x: model(x).sum(0), ["layers/1"])(model, x)

    assert_same(nnx.to_pure_dict(nnx.state(model)), before)
    expected = np.tile(model(x).sum(0), (1, 3, 1))
    expected[0][np.eye(3, dtype=bool)] = 0
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_what_cannot_be_swept_is_an_error():
    fn, variables, x = net()
    with pytest.raises(BadInput, match="at least one path"):
        sweep(fn, [])
    with pytest.raises(BadInput, match=r"\(3,\)"):
        sweep(fn, ["a"], np.ones(3))(variables, x)
    with pytest.raises(UnreachedCall, match="'c'"):
        sweep(fn, ["c"])(variables, x)
