"""quick: search a root, take a checkpoint, run a job on it."""

import os
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tests.jobs.small import Hidden, Outputs, Small, SmallWithAnalysis, series
from theseus_track.analysis import AnalysisBase
from theseus_track.errors import AnalysisFault, BadInput, NotFound
from theseus_track.jobs import Trainer
from theseus_track.quick import AnalysisJob, init, quick
from theseus_track.run import open_run
from theseus_track.store import Result, Run, Store


class Means(AnalysisBase, Small):
    """A question that the training did not ask."""

    TARGET = Hidden

    def analyze(self, layer: Hidden, inputs: Any) -> jax.Array:
        """Average the output over the batch: [unit]."""
        output: jax.Array = inputs.output
        return output.mean(axis=0)

    def plot(self, values: np.ndarray) -> list[float]:
        """Return the numbers."""
        return [float(value) for value in values]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training of six steps: checkpoints at 3 and 6, analyses at 2, 4 and 6."""
    path = tmp_path_factory.mktemp("root")
    SmallWithAnalysis(steps=6)(path, name="train", id="source", group="g", tags=["t"])
    return path


def results(root: Path, name: str, step: int) -> list[Result]:
    return Store(root).run("source").results(name, step, superseded=True)


def test_a_result_attaches_to_the_run_and_step_of_the_checkpoint(root: Path) -> None:
    with quick(root) as q:
        q.build(Means, "inspect")
        q.find().spec(run="train").checkpoint().latest().resume()
        job = q.create()
        assert isinstance(job, AnalysisJob)
        result = job()
    run = Store(root).run("source")
    (saved,) = [node for node in init(root).find().name("train").step(6).all()]
    assert [r.id for r in Store(root).runs(name="inspect")] == []
    assert (result.run.id, result.step, result.name) == ("source", 6, "means")
    assert result.source.kind == "replay"
    assert saved.checkpoint is not None
    assert result.source.checkpoint == str(saved.checkpoint.path)
    assert run["means"].steps == [6]
    assert result.table == [float(v) for v in np.asarray(result.values)]
    # The state of the end of the training, looked at by hand.
    trainer = Small()
    trainer.setup()
    inline = next(r for r in results(root, "outputs", 6) if r.source.kind == "live")
    expected = np.asarray(inline.values["hidden_0"]).mean(axis=0)  # type: ignore[index]
    # The mean of eight numbers, once by XLA and once by numpy, in float32.
    np.testing.assert_allclose(np.asarray(result.values), expected, rtol=1e-6)


def test_an_inline_analysis_run_again_gives_the_same_bits(root: Path) -> None:
    with quick(root) as q:
        q.build(Outputs)
        q.find().name("train").step(6).resume()
        again = q()
    first, second = results(root, "outputs", 6)
    assert (first.source.kind, second.source.kind) == ("live", "replay")
    assert first.superseded
    assert not second.superseded
    for path, value in first.values.items():  # type: ignore[attr-defined]
        assert value.tobytes() == again.values[path].tobytes()
    # One batch, so that the two may be compared.
    assert first.to_json()["probe"] == second.to_json()["probe"]


def test_a_branch_is_a_run_of_its_own(root: Path) -> None:
    with quick(root) as q:
        q.build(Means, "aside", project="p", group="h")
        q.find().name("train").step(3).branch()
        result = q()
    run = Store(root).run("aside")
    assert (run.project, run.info.group, run.info.tags) == (
        "p",
        "h",
        ("from:source@3",),
    )
    assert (result.run.id, result.step) == (run.id, 3)


def test_a_training_branches_from_the_state_of_the_checkpoint(root: Path) -> None:
    with quick(root) as q:
        q.build(Small, "further")
        q.find().nonce("source").step(3).branch()
        trainer = q.create()
        assert isinstance(trainer, Trainer)
        assert int(trainer.state.step) == 3
        trainer()
    further, source = Store(root).run("further"), Store(root).run("source")
    # Nothing was changed, so the rest of the training comes out the same.
    assert series(further, "train/loss") == series(source, "train/loss")[3:]


def test_a_training_resumes_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    Small(steps=3)(tmp_path, name="short", id="short")
    Small(steps=6)(tmp_path, name="whole", id="whole")
    with quick(tmp_path) as q:
        q.build(Small)
        q.find().name("short").checkpoint().resume()
        assert q.config.steps == 3
        q.config.steps = 6
        q()
    short, whole = (Store(tmp_path).run(name) for name in ("short", "whole"))
    assert series(short, "train/loss") == series(whole, "train/loss")
    assert len(Store(tmp_path).runs()) == 2


def test_a_training_does_not_go_back_over_its_own_checkpoints(root: Path) -> None:
    before = sorted(root.rglob("*"))
    with quick(root) as q:
        q.build(Small)
        q.find().name("train").step(3).resume()
        q.config.steps = 9
        with pytest.raises(BadInput, match=r"step 6.*branch\(\)"):
            q()
    assert sorted(root.rglob("*")) == before


def test_a_created_trainer_takes_trackers_and_nothing_that_was_chosen(
    root: Path,
) -> None:
    with quick(root) as q:
        q.build(Small, "x")
        q.find().name("train").step(3).branch()
        trainer: Any = q.create()
        with pytest.raises(BadInput, match="chosen by quick"):
            trainer(project="other")


def test_batches_stay_until_the_next_tick(root: Path) -> None:
    with quick(root) as q:
        q.build(Small, "x")
        q.find().name("train").step(3).branch()
        trainer: Any = q.create()
    plain = Small()
    (train, val) = (
        [b["x"] for b, _ in zip(plain.batches(s), range(6), strict=False)]
        for s in ("train", "val")
    )
    np.testing.assert_array_equal(trainer.batch()["x"], val[0])
    np.testing.assert_array_equal(trainer.batch()["x"], val[0])
    # The batch that update 4 takes.
    np.testing.assert_array_equal(trainer.batch("train")["x"], train[3])
    trainer.tick()
    np.testing.assert_array_equal(trainer.batch()["x"], val[1])
    np.testing.assert_array_equal(trainer.batch("train")["x"], train[4])


def test_a_later_batch_is_another_probe(root: Path) -> None:
    with quick(root) as q:
        q.build(Means, "ticked")
        q.find().name("train").step(3).branch()
        job: Any = q.create()
        first = job()
        job.tick()
        second = job()
    assert first.to_json()["probe"] != second.to_json()["probe"]


def test_without_a_choice_an_analysis_looks_at_initial_parameters(
    tmp_path: Path,
) -> None:
    with quick(tmp_path) as q:
        result = q.build(Means, "fresh")()
    assert (result.step, result.source.kind) == (0, "live")
    assert Store(tmp_path).run("fresh").info.job.endswith(":Means")  # type: ignore[union-attr]


def test_a_fault_leaves_nothing_behind(root: Path) -> None:
    class Faulty(Means):
        """Fails at trace time."""

        def analyze(self, layer: Hidden, inputs: Any) -> jax.Array:
            raise ZeroDivisionError("on purpose")

    before = sorted(root.rglob("*"))
    with quick(root) as q:
        q.build(Faulty)
        q.find().name("train").step(6).resume()
        with pytest.raises(AnalysisFault, match="on purpose"):
            q()
    assert sorted(root.rglob("*")) == before


def test_searching_writes_nothing(tmp_path: Path) -> None:
    with quick(tmp_path / "none") as q, pytest.raises(NotFound, match="none"):
        q.build(Means).find().all()
    assert not (tmp_path / "none").exists()


def test_the_root_is_that_of_the_environment(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THESEUS_ROOT", os.fspath(root))
    assert init().root == root


def test_the_same_build_keeps_the_session(root: Path) -> None:
    config = {"steps": 8}
    q = init(root).build(Small, "x", config=config)
    q.find().name("train").step(3).branch()
    made = q.create()
    config["steps"] = 9
    assert q.build(Small, "x", config={"steps": 8}).create() is made
    # The caller's change counts, not the object that was passed.
    assert q.build(Small, "x", config=config).config.steps == 9
    assert q.create() is not made
    q.close()


def test_a_failed_build_keeps_the_session(root: Path) -> None:
    q = init(root).build(Small, "x", config={"steps": 8})
    for bad in ({"steps": "many"}, {"stepz": 3}):
        with pytest.raises(BadInput, match="steps"):
            q.build(Small, "x", config=bad)
    with pytest.raises(BadInput, match="no job"):
        q.build(dict)
    with pytest.raises(NotFound):
        q.build("no/such/key")
    assert q.config.steps == 8


def test_a_failed_choice_keeps_the_session(root: Path, tmp_path: Path) -> None:
    with open_run(
        root, name="bare", id="bare", checkpoints=root / "checkpoints/source"
    ):
        pass
    q = init(root).build(Small, "x")
    q.find().name("train").step(3).branch()
    with pytest.raises(NotFound, match=r"'nobody'.*'bare'"):
        q.find().name("nobody").resume()
    with pytest.raises(BadInput, match="no saved config"):
        q.find().name("bare").checkpoint().resume()
    with pytest.raises(BadInput, match="has no checkpoint"):
        q.find().name("train").step(2).resume()
    trainer: Any = q.create()
    assert int(trainer.state.step) == 3


def test_choosing_again_loads_the_saved_config_again(root: Path) -> None:
    q = init(root).build(Small, "x", config={"learning_rate": 0.5})
    q.find().name("train").step(3).branch()
    assert (q.config.steps, q.config.learning_rate) == (6, 0.5)
    q.config.steps = 20
    q.find().name("train").step(3).branch()
    assert q.config.steps == 6
    q.create()
    with pytest.raises(RuntimeError, match="created already"):
        q.find().name("train").step(6).branch()


def test_settings_are_checked_and_known(root: Path) -> None:
    q = init(root)
    with pytest.raises(BadInput, match=r"build\(JOB"):
        _ = q.config
    q.build(Small)
    assert q.config.seed == 0
    assert "learning_rate" in dir(q.config)
    with pytest.raises(AttributeError, match="steps"):
        _ = q.config.stepz
    with pytest.raises(BadInput, match="steps"):
        q.config.steps = "many"


def test_an_analysis_without_a_trainer_needs_a_run_with_a_job(root: Path) -> None:
    q = init(root).build(Outputs)
    with pytest.raises(BadInput, match="has no Trainer"):
        q.create()


def test_a_moved_root_finds_its_checkpoints(root: Path, tmp_path: Path) -> None:
    import shutil  # noqa: PLC0415

    moved = tmp_path / "moved"
    shutil.copytree(root, moved)
    shutil.move(root / "checkpoints", root / "elsewhere")
    try:
        nodes = init(moved).find().nonce("source").checkpoint().all()
    finally:
        shutil.move(root / "elsewhere", root / "checkpoints")
    assert [node.step for node in nodes] == [3, 6]
    assert all(
        moved in node.checkpoint.path.parents for node in nodes if node.checkpoint
    )


def test_the_ledger_stays_whole(root: Path) -> None:
    run: Run = Store(root).run("source")
    assert run.damaged == []
    assert run.state == "finished"
