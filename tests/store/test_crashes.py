"""Processes that die, race or read while others write: nothing acknowledged is lost."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from theseus_track.store import Store, verify

PROJECT = Path(__file__).parents[2]

# Says each step once its records are acknowledged, until it is killed.
WRITE = """
import sys
from pathlib import Path
import numpy as np
from tests.store.ledgers import evaluate, metrics, writer
ledger = writer(Path(sys.argv[1]))
for step in range(int(sys.argv[2]), 10**9):
    evaluate(ledger, step, value=np.full(500, step, np.int64))
    ledger.append(metrics(step, loss=1.0 / (step + 1)))
    print(step, flush=True)
"""

RACE = """
import sys, time
from pathlib import Path
from tests.store.ledgers import evaluate, writer
while time.time() < float(sys.argv[2]):
    pass
with writer(Path(sys.argv[1])) as ledger:
    evaluate(ledger, int(sys.argv[3]))
"""

COUNT = """
import sys
from pathlib import Path
import numpy as np
from tests.store.ledgers import evaluate, writer
with writer(Path(sys.argv[1])) as ledger:
    for step in range(150):
        evaluate(ledger, step, sys.argv[2], value=np.full(300, step, np.float64))
"""


def _start(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow  # starts and kills twenty processes
def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(0)
    acknowledged: list[int] = []
    for attempt in range(20):
        first = attempt * 100_000
        process = _start(WRITE, tmp_path, first)
        assert process.stdout is not None
        acknowledged.append(int(process.stdout.readline()))
        time.sleep(chance.uniform(0, 0.05))
        process.kill()
        assert process.wait() == -signal.SIGKILL
        acknowledged += [int(line) for line in process.stdout if line.endswith("\n")]
        process.stdout.close()
    run = Store(tmp_path).run("r1")
    assert set(acknowledged) <= set(run.steps)
    assert set(acknowledged) <= {row.step for row in run.metrics()}
    series = run["activations"]
    for step in acknowledged:
        result = series[step]
        np.testing.assert_array_equal(result.values, np.full(500, step, np.int64))
        assert result.figure is not None
    assert verify(tmp_path) == []
    assert run.state == "stopped"


@pytest.mark.slow  # starts processes
def test_processes_that_create_one_root_at_once_all_succeed(tmp_path: Path) -> None:
    start = time.time() + 1.5
    root = tmp_path / "not" / "yet"
    processes = [_start(RACE, root, start, i) for i in range(4)]
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0] * 4
    run = Store(root).run("r1")
    assert run.steps == [0, 1, 2, 3]
    assert len(run.writers()) == 4
    assert verify(root) == []
    assert not list(root.rglob("*.tmp"))


@pytest.mark.slow  # starts processes
def test_a_reader_beside_writers_never_sees_half_a_record(tmp_path: Path) -> None:
    processes = [_start(COUNT, tmp_path, name) for name in ("a", "b")]
    store = Store(tmp_path)
    checked = 0
    while any(process.poll() is None for process in processes):
        if not (tmp_path / "runs").exists():
            continue
        for run in store.runs():
            assert run.damaged == []
            for result in run.results()[-4:]:
                step = float(result.step)
                np.testing.assert_array_equal(result.values, np.full(300, step))
                checked += 1
    for process in processes:
        process.communicate()
    (run,) = store.runs()
    assert checked > 0
    assert run["a"].steps == run["b"].steps == list(range(150))
    assert verify(store) == []
