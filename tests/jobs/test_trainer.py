"""The Trainer: what constructing, setting up and running one does."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.jobs.small import (
    Broken,
    Outputs,
    Rare,
    Small,
    SmallWithAnalysis,
    same_bits,
    series,
    the_run,
)
from theseus_track.errors import BadInput, LedgerError, PlanError
from theseus_track.jobs import Trainer
from theseus_track.store import Run


@dataclasses.dataclass
class Trained:
    """A training that is done, for the tests that only look at what it left."""

    trainer: Small
    root: Path
    metrics: dict[str, float]

    @property
    def run(self) -> Run:
        """Return its run."""
        return the_run(self.root)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    root = tmp_path_factory.mktemp("trained")
    trainer = SmallWithAnalysis(steps=7, eval_every=3, eval_batches=3)
    metrics = trainer(root, name="n", project="p", group="g", tags=["t"])
    return Trained(trainer, root, metrics)


def test_constructing_allocates_nothing() -> None:
    class Untouchable(Small):
        def batches(self, split: str) -> Iterator[Any]:
            raise AssertionError(split)

    with pytest.raises(RuntimeError, match=r"setup\(\)"):
        _ = Untouchable().state


def test_setup_draws_the_parameters_that_the_seed_determines() -> None:
    one, two, other = Small(seed=3), Small(seed=3), Small(seed=4)
    for trainer in (one, two, other):
        trainer.setup()
    assert same_bits(one.state, two.state)
    assert not same_bits(one.state, other.state)
    assert set(one.state.variables) == {"params", "batch_stats"}


def test_setup_keeps_a_state_that_is_there() -> None:
    trainer = Small()
    trainer.setup()
    state = trainer.state
    trainer.setup()
    assert trainer.state is state


@pytest.mark.slow  # trains
def test_training_lowers_the_loss(tmp_path: Path) -> None:
    Small(steps=150, eval_every=75, learning_rate=3e-2)(tmp_path)
    losses = series(the_run(tmp_path), "eval/loss")
    assert losses[-1][1] < 0.5 * losses[0][1]


@pytest.mark.slow  # trains
def test_analyses_change_no_bit_of_the_training(tmp_path: Path) -> None:
    # Small has dropout and batch statistics, which an analysis could disturb.
    plain, watched = Small(), SmallWithAnalysis()
    plain(tmp_path / "plain")
    watched(tmp_path / "watched")
    one, two = the_run(tmp_path / "plain"), the_run(tmp_path / "watched")
    assert len(series(one, "train/loss")) == plain.args.steps
    assert series(one, "train/loss") == series(two, "train/loss")
    # Parameters, batch statistics and the optimizer's state.
    assert same_bits(plain.state, watched.state)
    assert two.analyses == ["outputs"]


@pytest.mark.slow  # trains
def test_it_evaluates_every_so_many_steps_and_at_the_last(trained: Trained) -> None:
    assert [step for step, _ in series(trained.run, "eval/loss")] == [3, 6, 7]
    assert trained.run["outputs"].steps == [3, 6, 7]


@pytest.mark.slow  # trains
def test_it_returns_the_last_metrics(trained: Trained) -> None:
    assert trained.metrics == {
        name: series(trained.run, name)[-1][1]
        for name in ("train/loss", "train/largest", "eval/loss", "eval/largest")
    }


@pytest.mark.slow  # trains
def test_results_belong_to_the_probe_batch(trained: Trained) -> None:
    result = trained.run["outputs"].latest
    values: Any = result.values
    assert result.paths == ("hidden_0", "hidden_1")

    trainer = trained.trainer
    model: Any = trainer.model
    _, first = model.apply(
        trainer.state.variables, trainer.batch()["x"], capture_intermediates=True
    )
    expected = first["intermediates"]["hidden_1"]["__call__"][0]
    # Jitted here, eager there: another order of rounding in float32.
    np.testing.assert_allclose(values["hidden_1"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow  # trains
def test_eval_metrics_are_the_mean_over_the_validation_batches(
    trained: Trained,
) -> None:
    trainer = trained.trainer
    batches = trainer.batches("val")
    losses = [
        float(trainer.eval_step(trainer.state.variables, next(batches))["loss"])
        for _ in range(3)
    ]
    assert trained.metrics["eval/loss"] == pytest.approx(np.mean(losses), rel=1e-6)


@pytest.mark.slow  # trains
def test_a_trainer_that_is_done_does_not_train_again(
    trained: Trained, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match="this Trainer is at step 7"):
        trained.trainer(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow  # trains
def test_the_run_says_how_to_make_it_again(trained: Trained) -> None:
    info = trained.run.info
    assert (info.name, info.project, info.group, info.tags) == ("n", "p", "g", ("t",))
    assert info.config["steps"] == 7
    assert str(info.job).endswith("small:SmallWithAnalysis")
    assert "class Small(Trainer)" in str(info.job_source)


@pytest.mark.slow  # trains
def test_every_skips_evaluations_without_a_third_program(tmp_path: Path) -> None:
    traced = []

    class Counted(Rare):
        NAME = "rare"

        def analyze(self, layer: Any, inputs: Any) -> jax.Array:
            traced.append(layer)
            return super().analyze(layer, inputs)

    class Training(Small):
        ANALYSIS = (Outputs, Counted)

    trainer = Training(steps=10)
    trainer(tmp_path)
    run = the_run(tmp_path)
    assert run["outputs"].steps == [2, 4, 6, 8, 10]
    assert run["rare"].steps == [2, 6, 10]
    # Two layers each; traced for the plan, its FLOPs and the one program.
    assert len(traced) <= 2 * 4


@pytest.mark.slow  # trains
def test_an_analysis_with_merge_sees_every_validation_batch(tmp_path: Path) -> None:
    class Count(Outputs):
        NAME = "count"

        def analyze(self, layer: Any, inputs: Any) -> jax.Array:
            output: jax.Array = inputs.output
            return jnp.full((), output.shape[0])

        def merge(self, a: Any, b: Any) -> Any:
            return jax.tree.map(jnp.add, a, b)

    class Training(Small):
        ANALYSIS = (Count, Outputs)

    Training(steps=2, eval_batches=3, batch_size=4)(tmp_path)
    run = the_run(tmp_path)
    assert run["count"].latest.table == {"hidden_0": 12.0, "hidden_1": 12.0}
    assert run["outputs"].latest.shapes["hidden_0"] == (4, 8)


@pytest.mark.slow  # trains
def test_analyses_can_be_switched_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THESEUS_TRACK", "off")
    SmallWithAnalysis(steps=2)(tmp_path)
    run = the_run(tmp_path)
    assert run.results() == []
    assert len(series(run, "eval/loss")) == 1


@pytest.mark.slow  # trains
def test_the_last_step_analyses_whatever_every_says(tmp_path: Path) -> None:
    class Training(Small):
        ANALYSIS = (Rare,)

    Training(steps=8)(tmp_path)
    assert the_run(tmp_path)["rare"].steps == [2, 6, 8]


@pytest.mark.slow  # trains
def test_a_faulty_analysis_costs_only_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Training(Small):
        ANALYSIS = (Broken, Outputs)

    metrics = Training()(tmp_path)
    run = the_run(tmp_path)
    assert metrics["eval/loss"] > 0
    assert run["outputs"].steps == [2, 4, 6]
    assert "broken on purpose" in caplog.text
    assert "broken on purpose" in str(run["broken"].latest.error)


@pytest.mark.slow  # trains
def test_under_strict_a_faulty_analysis_stops_before_anything_is_written(
    tmp_path: Path,
) -> None:
    class Training(Small):
        ANALYSIS = (Broken, Outputs)

    with pytest.raises(PlanError, match="broken on purpose"):
        Training()(tmp_path, strict=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow  # trains
def test_an_interrupt_closes_the_run_and_keeps_its_checkpoints(tmp_path: Path) -> None:
    class Interrupted(Small):
        def batches(self, split: str) -> Iterator[Any]:
            for index, batch in enumerate(super().batches(split)):
                if split == "train" and index == 4:
                    raise KeyboardInterrupt
                yield batch

    with pytest.raises(KeyboardInterrupt):
        Interrupted()(tmp_path)
    run = the_run(tmp_path)
    assert run.state == "stopped"
    assert [step for step, _ in series(run, "train/loss")] == [1, 2, 3, 4]
    assert Path(str(run.info.checkpoints), "3", "default").is_dir()


@pytest.mark.slow  # trains
def test_data_that_ends_too_early_is_named(tmp_path: Path) -> None:
    class Short(Small):
        def batches(self, split: str) -> Iterator[Any]:
            yield next(iter(super().batches(split)))

    with pytest.raises(BadInput, match="ended after 1 batches, but steps=6"):
        Short()(tmp_path)


@pytest.mark.slow  # trains
def test_no_validation_data_is_named(tmp_path: Path) -> None:
    class Blind(Small):
        def batches(self, split: str) -> Iterator[Any]:
            return super().batches(split) if split == "train" else iter(())

    with pytest.raises(BadInput, match=r"batches\('val'\) yielded no batch"):
        Blind()(tmp_path)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"step": 3}, "'steps'"),
        ({"steps": "many"}, "steps='many'"),
        ({"steps": 0}, "steps=0"),
        ({"learning_rate": 0.0}, "learning_rate=0.0"),
        ({"learning_rate": float("nan")}, "learning_rate=nan"),
        ({"seed": -1}, "seed=-1"),
        ({"keep": 0}, "keep=0"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(
    settings: dict[str, Any], named: str
) -> None:
    with pytest.raises(BadInput, match=named):
        Small(**settings)


def test_a_root_that_cannot_be_written_is_named_before_the_training(
    tmp_path: Path,
) -> None:
    root = tmp_path / "file"
    root.write_text("")
    with pytest.raises(LedgerError, match="is not a directory"):
        Small()(root / "below")


def test_an_unknown_sink_is_named_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="tensorboard"):
        Small()(tmp_path, sinks=["tensorbord"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("missing", ["batches", "loss"])
def test_a_trainer_that_lacks_a_method_says_which(missing: str) -> None:
    class Empty(Trainer):
        pass

    call = {
        "batches": lambda: Empty().batches("train"),
        "loss": lambda: Empty().loss(None, None, train=True),
    }[missing]
    with pytest.raises(NotImplementedError, match=f"Empty has no {missing}"):
        call()
