"""The Trainer with NNX: as a loop of NNX's own, resumed alike, watched alike."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from tests.jobs.small import same_bits, series, the_run
from tests.jobs.small_nnx import Hidden, Net, SmallNNX, SmallNNXWithAnalysis
from theseus_track.checkpoints import find_checkpoints, restore
from theseus_track.jobs import outline, recipe_of

Trained = tuple[SmallNNXWithAnalysis, Path]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Return a Trainer that has trained six steps, and its root."""
    root = tmp_path_factory.mktemp("trained")
    trainer = SmallNNXWithAnalysis()
    trainer(root)
    return trainer, root


@pytest.mark.slow  # trains twice
def test_it_trains_as_a_loop_of_nnx_itself(tmp_path: Path) -> None:
    # Adam would blow up the rounding in the gradient of a bias before BatchNorm.
    class Plain(SmallNNX):
        def optimizer(self) -> optax.GradientTransformation:
            return optax.sgd(0.1)

    trainer = Plain(steps=3)
    names = ("params", *trainer.STREAMS)
    keys = dict(zip(names, jax.random.split(trainer.keys()[0], 2), strict=True))
    model = Net(nnx.Rngs(keys["params"], **keys))
    optimizer = nnx.Optimizer(model, trainer.optimizer(), wrt=nnx.Param)
    batches = trainer.batches("train")

    @nnx.jit
    def update(model: Net, optimizer: Any, batch: Any) -> jax.Array:
        def loss(model: Net) -> jax.Array:
            return ((model(batch["x"]) - batch["y"]) ** 2).mean()

        value, grads = nnx.value_and_grad(loss)(model)
        optimizer.update(model, grads)
        return value

    model.train()
    for _ in range(3):
        loss = update(model, optimizer, next(batches))

    metrics = trainer(tmp_path)

    # Another program, whose fusions round differently.
    assert metrics["train/loss"] == pytest.approx(float(loss), rel=1e-5)
    parts: Any = nnx.split(model, nnx.Param, ...)
    _, params, others = parts
    state = trainer.state
    for mine, its in ((state.params, params), (state.model_state["state"], others)):
        pairs = zip(jax.tree.leaves(mine), jax.tree.leaves(its), strict=True)
        for one, other in pairs:
            if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
                assert one == other
            else:
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.slow  # trains in two parts
def test_a_resumed_training_is_the_uninterrupted_one(
    trained: Trained, tmp_path: Path
) -> None:
    SmallNNXWithAnalysis(steps=3)(tmp_path, id="run")
    resumed = SmallNNXWithAnalysis()
    resumed(tmp_path, id="run", resume=True)
    # The dropout of the later steps was drawn from the streams that were saved.
    assert same_bits(_data(trained[0].state), _data(resumed.state))


@pytest.mark.slow  # trains without the analyses
def test_analyses_change_nothing_and_are_kept(trained: Trained, tmp_path: Path) -> None:
    plain, (watched, root) = SmallNNX(), trained
    plain(tmp_path)
    assert same_bits(_data(plain.state), _data(watched.state))
    run = the_run(root)
    assert series(run, "train/loss") == series(the_run(tmp_path), "train/loss")
    result: Any = run["outputs"][6]
    assert result.paths == ("hidden/0", "hidden/1")
    # The evaluation is not dropped out, and normalises by the statistics kept.
    model: Any = Net(nnx.Rngs(0))
    nnx.update(model, watched.state.params, watched.state.model_state["state"])
    model.eval()
    expected = model.hidden[0](watched.batch()["x"])
    np.testing.assert_allclose(
        result.values["hidden/0"], expected, rtol=1e-5, atol=1e-6
    )


def test_it_is_described_without_allocating() -> None:
    trainer = SmallNNXWithAnalysis()
    leaves = jax.tree.leaves(trainer.abstract_state())
    assert {type(leaf) for leaf in leaves} == {jax.ShapeDtypeStruct}
    found = {module.path: module for module in outline(recipe_of(trainer))}
    assert found["hidden/1"].cls == f"{Hidden.__module__}.Hidden"
    assert found["hidden/1"].parameters == 8 * 8 + 8 + 2 * 8
    assert found[""].parameters == sum(
        leaf.size for leaf in jax.tree.leaves(trainer.abstract_state().params)
    )


@pytest.mark.slow  # the first to ask trains
def test_its_checkpoints_are_read_without_the_optimizer(trained: Trained) -> None:
    trainer, root = trained
    (run,) = (root / "checkpoints").iterdir()
    steps = find_checkpoints(run).by_step()
    assert list(steps) == [3, 6]
    restored = restore(steps[6], SmallNNX().abstract_state().variables)
    assert restored.ignored == ("opt_state", "step")
    assert same_bits(_data(restored.tree), _data(trainer.state.variables))


def test_a_model_that_needs_settings_is_built_by_a_function(tmp_path: Path) -> None:
    class Wide(SmallNNX):
        def build(self) -> Any:
            return lambda rngs: nnx.Linear(3, self.args.batch_size, rngs=rngs)

        def loss(self, model, batch, *, train):
            return (model(batch["x"]) ** 2).mean()

    assert Wide(batch_size=5).abstract_state().params["kernel"].shape == (3, 5)


def _data(tree: object) -> object:
    """Return a tree with the data of its random keys, which numpy can compare."""
    return jax.tree.map(
        lambda leaf: (
            jax.random.key_data(leaf)
            if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
            else leaf
        ),
        tree,
    )
