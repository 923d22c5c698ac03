"""Replay: what is computed afterwards equals what the training would have computed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest

from tests.jobs.small import Hidden, Outputs, Small, SmallWithAnalysis
from theseus_track.analysis import AnalysisBase
from theseus_track.errors import BadInput, NotFound, PlanError
from theseus_track.replay import (
    Steps,
    Target,
    backfill,
    find_target,
    parse_steps,
    plan_replay,
)
from theseus_track.run import open_run
from theseus_track.store import Result, Run, Store

COMPILE = "/jax/core/compile/backend_compile_duration"


class Means(AnalysisBase):
    """A question that the training did not ask."""

    TARGET = Hidden

    def analyze(self, layer: Hidden, inputs: Any) -> jax.Array:
        """Average the output over the batch: [unit]."""
        output: jax.Array = inputs.output
        return output.mean(axis=0)

    def plot(self, values: np.ndarray) -> list[float]:
        """Return the numbers."""
        return [float(value) for value in values]


class Fails(Means):
    """Fails at trace time."""

    NAME = "fails"

    def analyze(self, layer: Hidden, inputs: Any) -> jax.Array:
        """Fail."""
        raise ZeroDivisionError("on purpose")


class FailsToDraw(Means):
    """Fails when it is drawn."""

    NAME = "fails_to_draw"

    def plot(self, values: np.ndarray) -> list[float]:
        """Fail."""
        raise ZeroDivisionError("not drawn on purpose")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training of eight steps: analyses and checkpoints at every second one."""
    root = tmp_path_factory.mktemp("trained")
    SmallWithAnalysis(steps=8, checkpoint_every=2)(root, name="train", id="source")
    return root


@pytest.fixture
def root(trained: Path, tmp_path: Path) -> Path:
    """A copy, which the test may change."""
    return Path(shutil.copytree(trained, tmp_path / "root"))


def target(root: Path, *analyses: type[AnalysisBase], **kwargs: Any) -> Target:
    return find_target("train", analyses, root=root, **kwargs)


def run_of(root: Path) -> Run:
    return Store(root).run("source")


def replay(root: Path, *analyses: type[AnalysisBase], **kwargs: Any) -> Any:
    return backfill(plan_replay(target(root, *analyses)), **kwargs)


def values(result: Result) -> dict[str, np.ndarray]:
    found: Any = result.values
    return dict(found)


def forget(root: Path) -> Result:
    """Make it as if no analysis had ever run; returns the last result there was."""
    last = run_of(root)["outputs"].latest
    assert last.values is not None  # Read while it can be.
    for journal in run_of(root).dir.glob("*.jsonl"):
        journal.unlink()
    return last


def test_the_same_analyses_give_the_same_bits(root: Path) -> None:
    before = {result.step: values(result) for result in run_of(root)["outputs"]}
    program = forget(root).to_json()["program"]
    assert "1e-6" not in str(plan_replay(target(root, Outputs)))
    replay(root, Outputs)
    after = run_of(root)["outputs"]
    assert {result.to_json()["program"] for result in after} == {program}
    assert after.steps == [2, 4, 6, 8] == sorted(before)
    for result in after:
        for path, value in values(result).items():
            assert value.tobytes() == before[result.step][path].tobytes()


def test_another_set_agrees_within_1e_6_and_says_so(root: Path) -> None:
    before = values(run_of(root)["outputs"].latest)
    program = forget(root).to_json()["program"]
    plan = plan_replay(target(root, Means, Outputs), Steps(latest=True))
    said = (
        "The training computes outputs. Another set of analyses agrees with it within"
    )
    assert f"{said} rounding, 1e-6 in float32" in str(plan)
    assert backfill(plan).done == (8,)
    after = run_of(root)["outputs"].latest
    for path, value in values(after).items():
        np.testing.assert_allclose(value, before[path], rtol=1e-6, atol=1e-6)
    assert after.to_json()["program"] not in (None, program)


def test_a_question_never_asked_is_answered_at_the_steps_of_the_checkpoints(
    root: Path,
) -> None:
    tells: list[tuple[int, int]] = []
    outcome = replay(root, Means, tell=lambda done, total: tells.append((done, total)))
    assert (outcome.done, outcome.skipped, outcome.exit_code) == ((2, 4, 6, 8), 0, 0)
    assert tells == [(1, 4), (2, 4), (3, 4), (4, 4)]
    inline, means = run_of(root)["outputs"], run_of(root)["means"]
    assert means.steps == inline.steps
    for one, other in zip(inline, means, strict=True):
        expected = values(one)["hidden_0"].mean(axis=0)
        # Four numbers summed by XLA and by numpy, in float32.
        np.testing.assert_allclose(np.asarray(other.values), expected, rtol=1e-6)
        assert other.source.kind == "replay"
        assert other.source.checkpoint is not None
        assert Path(other.source.checkpoint).name == str(other.step)
        # The save of that step, which came right after its evaluation.
        assert 0 <= other.wall_time - one.wall_time < 60
        assert one.to_json()["probe"] == other.to_json()["probe"]


def test_the_second_time_there_is_nothing_to_do(root: Path) -> None:
    replay(root, Means)
    before = sorted(run_of(root).dir.rglob("*"))
    plan = plan_replay(target(root, Means))
    assert plan.due == ()
    assert plan.counts() == {"means": {"done": [2, 4, 6, 8]}}
    outcome = backfill(plan)
    assert (outcome.done, outcome.skipped, outcome.complete) == ((), 4, True)
    assert sorted(run_of(root).dir.rglob("*")) == before


def test_what_is_missing_is_done_and_no_more(root: Path) -> None:
    backfill(plan_replay(target(root, Means), Steps(latest=True)))
    plan = plan_replay(target(root, Means, Outputs))
    assert plan.counts() == {
        "means": {"new": [2, 4, 6], "done": [8]},
        "outputs": {"done": [2, 4, 6, 8]},
    }
    assert backfill(plan).done == (2, 4, 6)
    sources = [result.source.kind for result in run_of(root)["outputs"]]
    assert sources == ["live"] * 4


def test_changed_measuring_is_computed_again_and_changed_drawing_is_not(
    root: Path,
) -> None:
    replay(root, Means)

    class Measured(Means):
        NAME = "means"

        def analyze(self, layer: Hidden, inputs: Any) -> jax.Array:
            output: jax.Array = inputs.output
            return output.mean(axis=0) * 2

    class Drawn(Means):
        NAME = "means"

        def plot(self, values: np.ndarray) -> list[float]:
            return [float(value) + 1 for value in values]

    assert plan_replay(target(root, Drawn)).counts() == {
        "means": {"redraw": [2, 4, 6, 8]}
    }
    assert plan_replay(target(root, Drawn)).due == ()
    steps = Steps(first=4, stop=5)
    changed = plan_replay(target(root, Measured), steps)
    assert changed.counts() == {"means": {"changed": [4]}}
    assert plan_replay(target(root, Measured), steps, only_missing=True).due == ()
    backfill(changed)
    old, new = run_of(root).results("means", 4, superseded=True)
    assert (old.superseded, new.superseded) == (True, False)
    np.testing.assert_array_equal(np.asarray(new.values), 2 * np.asarray(old.values))


def saves(root: Path) -> Path:
    return root / "checkpoints" / "source"


def copied(root: Path, step: int, to: int) -> Path:
    """Copy a checkpoint to another step, which it says itself, too."""
    place = Path(shutil.copytree(saves(root) / str(step), saves(root) / str(to)))
    file = place / "_CHECKPOINT_METADATA"
    about = json.loads(file.read_text())
    about["custom_metadata"]["step"] = to
    file.write_text(json.dumps(about))
    return place


def test_the_model_is_compiled_once(root: Path) -> None:
    compiled: list[str] = []

    def listen(event: str, duration_secs: float, **kwargs: Any) -> None:
        compiled.append(event)

    for step in (2, 4, 6, 8):
        copied(root, step, step + 8)
    plan = plan_replay(target(root, Means))
    backfill(plan_replay(target(root, Means), Steps(first=16)))
    # What the first checkpoint compiled beside the step (keys, hashes) is warm now.
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        outcome = backfill(plan)
    finally:
        jax.monitoring.clear_event_listeners()
    assert outcome.done == tuple(range(2, 17, 2))
    assert compiled.count(COMPILE) == 1


def spoil(root: Path) -> None:
    """Put what can go wrong beside the good checkpoints: 4 and 10 to 16."""
    # Corrupt: its arrays are cut to nothing.
    data = saves(root) / "4" / "default"
    for file in [*data.glob("d/*"), *data.glob("ocdbt.process_0/d/*")]:
        file.write_bytes(b"")
    (saves(root) / "10").mkdir()
    # Half-written, with the name that Orbax gives until it is whole, and without.
    shutil.copytree(saves(root) / "8", saves(root) / "12.orbax-checkpoint-tmp-0")
    (copied(root, 8, 13) / "default" / "_METADATA").unlink()
    # Somebody else's, and one of ours from before the output grew.
    with ocp.CheckpointManager(saves(root)) as saver:
        saver.save(14, args=ocp.args.StandardSave({"params": {"w": np.ones(3)}}))
        tree = saver.restore(8, args=ocp.args.StandardRestore())
        tree["params"]["Dense_0"]["kernel"] = np.zeros((8, 2), np.float32)
        saver.save(16, args=ocp.args.StandardSave(tree))


BROKEN = """
import sys

from tests.replay.test_replay import Means, plan_replay, replay, target
from theseus_track.errors import CheckpointError

root = sys.argv[1]
for line in str(plan_replay(target(root, Means))).splitlines()[2:]:
    print(line.strip())
outcome = replay(root, Means)
print(outcome)
print(outcome.complete, outcome.exit_code)
try:
    replay(root, Means, strict=True)
except CheckpointError as error:
    print("strict", type(error).__name__)
"""


@pytest.mark.slow
def test_what_is_broken_costs_itself(root: Path) -> None:
    """A process of its own, since what Orbax leaves behind is collected at its end."""
    spoil(root)
    done = subprocess.run(
        [sys.executable, "-c", BROKEN, str(root)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    # No warning, and no task of asyncio that nobody waited for.
    assert (done.returncode, done.stderr) == (0, "")
    said = [
        "The training computes outputs. Another set of analyses agrees with it",
        "10 is broken: it is empty",
        "13 is broken: default/_METADATA is missing",
        "12.orbax-checkpoint-tmp-0 is left out: it is being written, or its writer",
        "3 steps computed, 0 needed nothing.",
        "10 failed: it is empty",
        "13 failed: default/_METADATA is missing",
        f"4 failed: {saves(root) / '4' / 'default'} cannot be read: OUT_OF_RANGE",
        "14 failed: The checkpoint holds nothing at 'model_state/batch_stats'.",
        f"16 failed: {saves(root) / '16'} does not fit the model: 1 of another shape.",
        "False 3",
        "strict CheckpointError",
    ]
    lines = done.stdout.splitlines()
    assert len(lines) == len(said), done.stdout
    for line, begin in zip(lines, said, strict=True):
        assert line.startswith(begin)
    assert run_of(root)["means"].steps == [2, 6, 8]


def test_a_fault_of_one_analysis_costs_that_analysis(root: Path) -> None:
    outcome = replay(root, Means, Fails)
    assert outcome.done == (2, 4, 6, 8)
    assert "on purpose" in outcome.faults["fails"]
    assert outcome.exit_code == 3
    assert "fails" not in run_of(root).analyses
    with pytest.raises(PlanError, match="on purpose"):
        replay(root, Fails, strict=True)


def test_what_cannot_be_drawn_is_kept_and_named(root: Path) -> None:
    outcome = replay(root, FailsToDraw)
    assert outcome.exit_code == 3
    steps, why = outcome.undrawn["fails_to_draw"]
    assert steps == (2, 4, 6, 8)
    assert "not drawn on purpose" in why
    assert run_of(root)["fails_to_draw"][2].values is not None
    # The same code would fail the same way.
    assert plan_replay(target(root, FailsToDraw)).due == ()


def test_shards_share_the_work(root: Path) -> None:
    # Each plans when it begins, as processes do.
    done = [backfill(plan_replay(target(root, Means)).shard(i, 2)) for i in range(2)]
    assert [outcome.done for outcome in done] == [(2, 6), (4, 8)]
    assert run_of(root)["means"].steps == [2, 4, 6, 8]
    assert plan_replay(target(root, Means)).due == ()


def test_another_batch_needs_another_name(root: Path) -> None:
    other = {"x": np.ones((4, 3), np.float32), "y": np.ones((4, 1), np.float32)}
    plan = plan_replay(target(root, Means))
    with pytest.raises(BadInput, match="'val' is another batch"):
        backfill(plan, batch=other)
    assert "means" not in run_of(root).analyses
    backfill(plan, batch=lambda: other, probe="ones")
    ones = run_of(root).probes["ones"].hash
    assert [result.to_json()["probe"] for result in run_of(root)["means"]] == [ones] * 4


def test_what_another_batch_gave_is_no_answer(root: Path, tmp_path: Path) -> None:
    last, file = Steps(latest=True), tmp_path / "ones.npz"
    np.savez(file, x=np.ones((4, 3), np.float32), y=np.ones((4, 1), np.float32))
    asked = target(root, Means)
    backfill(plan_replay(asked, last))
    other = plan_replay(asked, last, probe="ones", batch=file)
    assert other.counts() == {"means": {"batch": [8]}}
    assert plan_replay(asked, last, batch=file, only_missing=True).due == ()
    assert backfill(other, probe="ones", batch=str(file)).done == (8,)
    # Under its name it is known now, and the batch of the training is another one.
    assert plan_replay(asked, last, probe="ones").due == ()
    assert plan_replay(asked, last).counts() == {"means": {"batch": [8]}}
    file.write_text("no arrays")
    with pytest.raises(BadInput, match="no arrays by name"):
        plan_replay(asked, last, batch=file)


def test_a_target_that_is_not_there_is_named(root: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="'trian'"):
        find_target("trian", [Means], root=root)
    with pytest.raises(BadInput, match="No analysis"):
        find_target("train", [], root=root)
    with pytest.raises(BadInput, match="not an analysis"):
        find_target("train", [Small], root=root)  # type: ignore[list-item]
    with open_run(root, name="bare", checkpoints=tmp_path / "gone"):
        pass
    with pytest.raises(NotFound, match=r"'bare'.*no checkpoints.*gone is not there"):
        find_target("bare", [Means], root=root)


# A run that was never ours.


class Model(nn.Module):
    """Somebody's model, which may have got another layer since."""

    extra: bool = False

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        y = nn.Dense(2, name="out")(nn.relu(nn.Dense(4, name="hidden")(x)))
        return nn.Dense(2, name="extra")(y) if self.extra else y


class Kernel(AnalysisBase):
    """What the hidden layer returns."""

    TARGET = nn.Dense

    def analyze(self, layer: nn.Dense, inputs: Any) -> jax.Array:
        """Return the output: [sample, unit]."""
        output: jax.Array = inputs.output
        return output

    def plot(self, values: np.ndarray) -> list[float]:
        """Return the means."""
        return [float(v) for v in values.mean(axis=0)]


RECIPE = """
import jax
import jax.numpy as jnp

from tests.replay.test_replay import Model
from theseus_track.jobs import Recipe

model = Model()
batch = jnp.arange(6.0).reshape(2, 3)
variables = jax.eval_shape(model.init, jax.random.key(0), batch)
recipe = Recipe(model.apply, variables, batch, item="state", take={"params": "params"})
"""


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A directory of Composite items, saved by code that has nothing of ours."""
    directory = tmp_path / "some where" / "ckpts"
    model = Model()
    with ocp.CheckpointManager(directory) as manager:
        for step in (100, 200):
            variables = model.init(jax.random.key(step), jnp.ones((1, 3)))
            state = {"params": variables["params"], "opt": {"mu": jnp.zeros(3)}}
            manager.save(
                step,
                args=ocp.args.Composite(
                    state=ocp.args.StandardSave(state),
                    metadata=ocp.args.JsonSave({"lr": 0.1}),
                ),
            )
        manager.wait_until_finished()
    (tmp_path / "recipe.py").write_text(RECIPE)
    return directory


def test_any_checkpoint_directory_is_replayed_by_a_recipe(
    foreign: Path, tmp_path: Path
) -> None:
    root, recipe = tmp_path / "root", str(tmp_path / "recipe.py")
    for expected in ((100, 200), ()):
        found = find_target(foreign, [Kernel], root=root, recipe=recipe)
        assert backfill(plan_replay(found)).done == expected
    (run,) = Store(root).runs()
    assert run.name == "ckpts"
    assert run["kernel"].steps == [100, 200]
    batch = np.arange(6.0).reshape(2, 3)
    params = Model().init(jax.random.key(200), jnp.ones((1, 3)))["params"]["hidden"]
    expected_values = batch @ np.asarray(params["kernel"]) + np.asarray(params["bias"])
    # float32 products of numbers up to 5.
    np.testing.assert_allclose(
        np.asarray(run["kernel"][200].values), expected_values, rtol=1e-5
    )
    # The run remembers how, so its name suffices from now on.
    again = find_target(run.id, [Kernel], root=root)
    assert plan_replay(again).due == ()


def test_of_several_groups_one_is_chosen(foreign: Path, tmp_path: Path) -> None:
    shutil.copytree(foreign, foreign.parent / "other")

    def chosen(group: str | None) -> Target:
        recipe = str(tmp_path / "recipe.py")
        return find_target(
            foreign.parent, [Kernel], root=tmp_path / "root", recipe=recipe, group=group
        )

    with pytest.raises(BadInput, match=r"'ckpts/' \(2\), 'other/' \(2\)"):
        plan_replay(chosen(None))
    with pytest.raises(NotFound, match="no checkpoints 'third/'"):
        plan_replay(chosen("third/"))
    for group in ("ckpts/", "other/"):
        assert backfill(plan_replay(chosen(group))).done == (100, 200)
        assert plan_replay(chosen(group)).due == ()
    names = sorted(run.name for run in Store(tmp_path / "root").runs())
    assert names == ["some where-ckpts", "some where-other"]


def test_a_checkpoint_that_does_not_fit_is_refused_unless_it_is_asked_for(
    foreign: Path, tmp_path: Path
) -> None:
    shapes = RECIPE.replace("model = Model()", "model = Model(extra=True)")
    arrays = shapes.replace("jax.eval_shape(model.init, ", "model.init(")
    (tmp_path / "shapes.py").write_text(shapes)
    (tmp_path / "arrays.py").write_text(arrays)

    def replay_by(recipe: str, **kwargs: Any) -> Any:
        file = str(tmp_path / recipe)
        found = find_target(foreign, [Kernel], root=tmp_path / "root", recipe=file)
        return backfill(plan_replay(found), **kwargs)

    refused = replay_by("arrays.py")
    assert refused.done == ()
    assert "2 missing" in refused.failed["100"]
    # Shapes cannot stand in for arrays.
    empty = replay_by("shapes.py", allow_partial=True)
    assert "its variables are shapes" in empty.failed["100"]
    assert replay_by("arrays.py", allow_partial=True).done == (100, 200)
    (run,) = Store(tmp_path / "root").runs()
    assert run["kernel"][100].source.partial


def test_without_a_recipe_the_message_is_a_beginning(
    foreign: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=r"--recipe FILE\.py") as caught:
        find_target(foreign, [Kernel], root=tmp_path / "root")
    text = str(caught.value)
    assert "params/hidden/kernel: float32[3, 4]" in text
    # It is Python, but for what only the user knows.
    compile(text[text.index('"""How to run') :], "recipe.py", "exec")
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize(
    ("text", "steps", "expected"),
    [
        ("3", Steps(first=3, stop=4), [3]),
        ("2:", Steps(first=2), [2, 3, 4, 6]),
        (":4", Steps(stop=4), [0, 2, 3]),
        ("::2", Steps(every=2), [0, 2, 4, 6]),
        ("1:6:2", Steps(first=1, stop=6, every=2), [3]),
    ],
)
def test_steps_are_written_as_slices(
    text: str, steps: Steps, expected: list[int]
) -> None:
    assert parse_steps(text) == steps
    assert steps.choose([6, 4, 3, 2, 0, 2]) == expected


@pytest.mark.parametrize("text", ["", "a", "1:2:3:4", "1:2:0", "-1", "1.5"])
def test_steps_that_make_no_sense_are_named(text: str) -> None:
    with pytest.raises(BadInput, match="steps"):
        parse_steps(text)
