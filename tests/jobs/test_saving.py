"""Checkpoints: what they carry, how many stay, and going on from one."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tests.jobs.small import Small, SmallWithAnalysis, same_bits, series, the_run
from theseus_track.errors import BadInput, NotFound

pytestmark = pytest.mark.slow  # each test trains


def _saved(root: Path) -> list[int]:
    directory = Path(str(the_run(root).info.checkpoints))
    return sorted(int(path.name) for path in directory.iterdir())


def test_a_checkpoint_carries_step_run_and_wall_time(tmp_path: Path) -> None:
    Small(steps=4)(tmp_path)
    run = the_run(tmp_path)
    assert _saved(tmp_path) == [3, 4]
    with ocp.CheckpointManager(Path(str(run.info.checkpoints))) as manager:
        metadata = manager.metadata(3).custom_metadata
    assert metadata["step"] == 3
    assert metadata["run"] == run.id
    times = [row.wall_time for row in run.metrics()]
    assert run.info.created < metadata["wall_time"] < times[-1] + 1


def test_a_checkpoint_holds_the_state_of_its_step(tmp_path: Path) -> None:
    # The state is donated to the next step while the checkpoint is being written.
    Small(steps=4)(tmp_path / "longer")
    alone = Small(steps=3)
    alone(tmp_path / "alone")
    run = the_run(tmp_path / "longer")
    with ocp.CheckpointManager(Path(str(run.info.checkpoints))) as saved:
        restored = saved.restore(3, args=ocp.args.StandardRestore(alone.state))
    assert same_bits(restored, alone.state)


def test_only_the_newest_checkpoints_stay(tmp_path: Path) -> None:
    Small(steps=6, checkpoint_every=1, keep=2)(tmp_path)
    assert _saved(tmp_path) == [5, 6]


def test_a_resumed_training_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    whole = SmallWithAnalysis(steps=7)
    whole(tmp_path / "whole")
    SmallWithAnalysis(steps=3)(tmp_path / "parts", name="parts")
    resumed = SmallWithAnalysis(steps=7)
    resumed(tmp_path / "parts", name="parts", resume=True)

    one, two = the_run(tmp_path / "whole"), the_run(tmp_path / "parts")
    assert same_bits(whole.state, resumed.state)
    assert series(one, "train/loss") == series(two, "train/loss")
    assert two["outputs"].steps[-2:] == one["outputs"].steps[-2:]
    assert same_bits(one["outputs"].latest.values, two["outputs"].latest.values)


class Spread(Small):
    """Its batches are over all devices, unlike its first state."""

    def batches(self, split: str) -> Iterator[dict[str, Any]]:
        mesh = Mesh(np.array(jax.devices()[:4]), ("data",))
        rows = NamedSharding(mesh, PartitionSpec("data"))
        for batch in super().batches(split):
            yield jax.device_put(batch, rows)


def test_a_resumed_training_goes_where_its_batches_are(tmp_path: Path) -> None:
    Spread(steps=1, eval_batches=1)(tmp_path, name="spread")
    resumed = Spread(steps=2, eval_batches=1)
    resumed(tmp_path, name="spread", resume=True)

    assert [row.step for row in the_run(tmp_path).metrics()] == [1, 1, 2, 2]
    places = [leaf.sharding.device_set for leaf in jax.tree.leaves(resumed.state)]
    assert {len(place) for place in places} == {4}


def test_resuming_needs_a_run_with_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Small()(tmp_path, name="never", resume=True)
    Small(steps=2)(tmp_path, name="once")
    with pytest.raises(NotFound, match="onec"):
        Small()(tmp_path, name="onec", resume=True)


def test_resuming_a_training_that_is_done_says_so(tmp_path: Path) -> None:
    Small(steps=2)(tmp_path, id="done")
    with pytest.raises(BadInput, match="steps=2 leaves nothing to do"):
        Small(steps=2)(tmp_path, id="done", resume=True)


def test_an_id_that_is_taken_is_not_trained_over(tmp_path: Path) -> None:
    Small(steps=1)(tmp_path, id="taken")
    with pytest.raises(BadInput, match="'taken' exists"):
        Small(steps=1)(tmp_path, id="taken")


# In a process of its own: what Orbax leaves behind when a save fails (coroutines that
# were never awaited) would warn in whatever test runs next.
IN_THE_WAY = """
import os, shutil, sys
from pathlib import Path
from tests.jobs.small import Small
from theseus_track.errors import CheckpointError
from theseus_track.jobs.saving import Checkpoints

trainer = Small(steps=2)
trainer.setup()
directory = Path(sys.argv[1])
try:
    with Checkpoints(directory, keep=None, run="r1") as saving:
        shutil.rmtree(directory)
        directory.write_text("in the way")
        saving.save(trainer.state, step=1)
except CheckpointError as error:
    print(error, flush=True)
# Orbax 0.12.8 keeps a thread that waits for the directory which is gone.
os._exit(0)
"""


def test_a_checkpoint_that_cannot_be_written_is_one_line_that_says_where(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "checkpoints"
    done = subprocess.run(
        [sys.executable, "-c", IN_THE_WAY, str(directory)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    (line,) = done.stdout.splitlines()
    assert f"cannot be written in {directory}" in line
