"""A call of a Trainer, of a run's checkpoint, or of a recipe is the same call."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.capture.same import assert_same
from tests.checkpoints.saved import bare
from tests.jobs.small import Small
from theseus_track.demo import PretrainGPT
from theseus_track.errors import BadInput, NotFound
from theseus_track.jobs import recipe_of
from theseus_track.quick import isolate, quick
from theseus_track.store import Store


@pytest.mark.slow  # Trains a small model.
def test_a_call_of_a_run_is_that_of_its_trainer(tmp_path):
    Small(steps=6)(tmp_path)
    (run,) = Store(tmp_path).runs()
    with quick(tmp_path) as session:
        session.build(Small, "look").find().checkpoint().step(3).resume()
        trainer: Any = session.create()

    of_run = isolate(run, "hidden_1", step=3)
    of_trainer = isolate(trainer, "hidden_1")
    recipe = dataclasses.replace(recipe_of(trainer), variables=trainer.state.variables)

    assert_same(of_run.content, of_trainer.content)
    assert_same(isolate(recipe, "hidden_1").content, of_run.content)
    assert_same(jax.jit(lambda call: call())(of_run), of_run.output)
    assert np.any(isolate(run, "hidden_1").output != of_run.output)
    size = of_run.save(tmp_path / "call")
    leaves = jax.tree.leaves(of_run.content)
    arrays = sum(getattr(leaf, "nbytes", 0) for leaf in leaves)
    assert (size / "arrays.npz").stat().st_size < 2 * arrays + 4096  # Names, headers.
    with pytest.raises(NotFound, match="step 4; there are: 3, 6"):
        isolate(run, "hidden_1", step=4)
    with pytest.raises(BadInput, match="step=3"):
        isolate(trainer, "hidden_1", step=3)


@pytest.mark.slow  # Compiles a GPT twice.
def test_what_the_call_does_not_depend_on_stays_on_disk(tmp_path):
    recipe = recipe_of(PretrainGPT(layers=2, features=16, heads=2, batch_size=2))
    rng = np.random.default_rng(0)
    variables = jax.tree.map(
        lambda leaf: jnp.asarray(rng.normal(size=leaf.shape), leaf.dtype),
        recipe.variables,
    )
    saved = bare(tmp_path / "3", 3, variables, use_ocdbt=False)
    read = ("token.", "position.", "blocks_0.norm_attn.", "blocks_0.attn.")
    others = [
        one
        for one in saved.glob("params.*")
        if not one.name.removeprefix("params.").startswith(read)
    ]
    # The rest of the first block, the second one, the last norm and the head.
    assert len(others) == 20
    for chunk in (chunk for one in others for chunk in one.iterdir()):
        if not chunk.name.startswith("."):
            chunk.write_bytes(b"spoilt")

    # Reading any of them would raise.
    call = isolate(recipe, "blocks_0/attn", checkpoints=tmp_path)

    whole = dataclasses.replace(recipe, variables=variables)
    assert_same(call.content, isolate(whole, "blocks_0/attn").content)


def test_what_is_no_run_says_how_to_get_one() -> None:
    with pytest.raises(BadInput, match=r"not 'train-gpt'.*Store\(root\)\.run\(name\)"):
        isolate("train-gpt", "blocks_0/attn")  # type: ignore[arg-type]
