"""Replays in processes of their own: killed at any moment, or beside a training."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.jobs.small import SmallWithAnalysis
from tests.replay.kill_process import STEPS
from tests.replay.test_replay import Means
from tests.run.test_two_processes import finish, free_address
from tests.run.test_two_processes import start as start_host
from theseus_track.cli import main
from theseus_track.replay import find_target, follow, plan_replay
from theseus_track.store import Store, verify

REPLAY = ["-a", "tests.replay.test_replay:Means"]
COMMAND = "from theseus_track.cli import main; main(prog_name='theseus-track')"
TRAINING = """
import sys, time
from tests.jobs.small import SmallWithAnalysis

class Slow(SmallWithAnalysis):
    def batches(self, split):
        for batch in super().batches(split):
            time.sleep(0.3 if split == "train" else 0)
            yield batch

if __name__ == "__main__":
    Slow(steps=8, checkpoint_every=2)(sys.argv[1], name="train", id="source")
"""
pytestmark = pytest.mark.slow  # each starts processes that import JAX


def start(*words: str | Path) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_killed_at_any_moment_the_same_command_goes_on(tmp_path: Path) -> None:
    root = tmp_path / "root"
    SmallWithAnalysis(steps=20, checkpoint_every=1)(root, name="train", id="source")
    command = ("-c", COMMAND, "replay", "train", "--root", str(root), *REPLAY)
    chance = random.Random(7)
    begun = 0
    for _ in range(3):
        process = start(*command)
        # The first line tells the plan; from there on it computes and writes.
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0.2, 2.5))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        begun += len(list(Store(root).run("source").dir.glob("*.jsonl"))) > 1
        assert verify(root) == []
    assert begun, "every process was killed before it wrote"
    process = start(*command)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    run = Store(root).run("source")
    assert [result.step for result in run.results("means")] == list(range(1, 21)), out
    assert all(r.values is not None and r.table for r in run.results("means"))
    assert plan_replay(find_target("source", [Means], root=root)).due == ()


@pytest.mark.parametrize(
    "kills", [5, pytest.param(20, marks=pytest.mark.soak)], ids=lambda n: f"{n} kills"
)
def test_killed_at_any_file_operation_nothing_is_lost_or_twice(
    tmp_path: Path, kills: int
) -> None:
    chance = random.Random(kills)
    # An undisturbed replay of all of them makes about 45.
    numbers = [str(chance.randint(1, 40)) for _ in range(kills)]
    process = start("-m", "tests.replay.kill_process", tmp_path, *numbers)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    (ends,) = [line for line in out.splitlines() if line.startswith("-9")]
    # The last ones may find too little to do to come to that operation.
    assert ends.split().count("-9") >= kills / 2
    assert set(ends.split()) <= {"-9", "0"}
    assert verify(tmp_path / "root") == []
    (run,) = Store(tmp_path / "root").runs()
    whole = [
        (result.step, np.asarray(result.values).item(), result.table)
        for result in run.results("product", superseded=True)
        if result.values_record and result.result_record
    ]
    assert whole == [(step, 2.0 * step, [2.0 * step]) for step in STEPS]


def test_each_checkpoint_is_replayed_as_it_is_saved(tmp_path: Path) -> None:
    file = tmp_path / "training.py"
    file.write_text(TRAINING)
    training = start(file, tmp_path)
    try:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("checkpoints/source/2")):
            assert time.monotonic() < deadline
            assert training.poll() is None
            time.sleep(0.1)
        target = find_target("source", [Means], root=tmp_path)
        told: list[int] = []
        outcome = follow(target, every=0.1, tell=lambda o: told.extend(o.done))
        assert training.wait(timeout=60) == 0
    finally:
        training.kill()
        training.communicate()
    assert outcome.done == (2, 4, 6, 8) == tuple(told)
    run = Store(tmp_path).run("source")
    assert run["means"].steps == [2, 4, 6, 8]
    assert (run.state, outcome.complete) == ("finished", True)
    assert run["means"].steps == run["outputs"].steps


def test_several_hosts_replay_as_one(tmp_path: Path) -> None:
    SmallWithAnalysis(steps=6, checkpoint_every=2)(tmp_path, name="train", id="source")
    journals = set(tmp_path.rglob("*.jsonl"))
    address, program = free_address(), Path(__file__).with_name("host_process.py")
    printed = finish(
        [start_host(program, rank, address, tmp_path) for rank in range(2)], timeout=90
    )
    assert [out.splitlines()[-1] for out in printed] == ["(2, 4, 6) 0"] * 2
    # Both read the checkpoints ahead and computed; one wrote.
    assert len(set(tmp_path.rglob("*.jsonl")) - journals) == 1
    run = Store(tmp_path).run("source")
    assert run["means"].steps == [2, 4, 6]


def test_the_command_exits_with_3_when_some_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    SmallWithAnalysis(steps=4, checkpoint_every=2)(tmp_path, name="train")
    (tmp_path / "checkpoints" / Store(tmp_path).run("train").id / "9").mkdir()
    words = ["replay", "train", "--root", str(tmp_path), *REPLAY]
    ones = tmp_path / "ones.py"
    ones.write_text(
        "import numpy as np\nNUMBER = 3\n"
        "def batch():\n    return {'x': np.ones((4, 3)), 'y': np.ones((4, 1))}\n"
    )
    for extra, code, said in (
        (["--dry-run"], 0, "means: 2 to compute"),
        ([], 3, "9 failed: it is empty"),
        (["--step", "2"], 3, "0 steps computed, 1 needed nothing"),
        (
            ["--batch", f"{ones}:batch", "--dry-run"],
            0,
            "2 to compute again (on another",
        ),
        (["--batch", f"{ones}:NUMBER"], 2, "no function"),
        (["--latest", "--step", "2"], 2, "only one of"),
        (["--steps", "1:x"], 2, "'1:x'"),
        (["--shard", "2/2"], 2, "0 <= I < N"),
        (["--batch", str(tmp_path / "none.npz")], 2, "none.npz"),
        (["--recipe", "none.py"], 2, "none.py"),
        (["--into", "nobody"], 2, "'nobody'"),
    ):
        with pytest.raises(SystemExit) as done:
            main([*words, *extra], prog_name="theseus-track")
        captured = capsys.readouterr()
        assert done.value.code == code, captured
        assert said in captured.out + captured.err
