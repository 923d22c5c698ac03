"""A call of a Trainer, of a run's checkpoint, or of a recipe is the same call."""

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

from tests.capture.same import assert_same
from tests.jobs.small import Small
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
