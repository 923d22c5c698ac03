"""Two JAX processes train as one: rank 0 writes, and nobody ever waits for it."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from theseus_track.store import Run, Store, verify

ROOT = Path(__file__).resolve().parents[2]
PROCESS = Path(__file__).with_name("host_process.py")
SINKS = ["memory", "slow", "failing", "raising"]

# Starts three processes that import JAX, compile and train: one test in all, whose
# parts are read by the others.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return f"localhost:{probe.getsockname()[1]}"


def start(*words: object) -> subprocess.Popen[str]:
    paths = [str(ROOT), str(ROOT / "analyses"), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, "-W", "error", *map(str, words)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(processes: list[subprocess.Popen[str]], timeout: float) -> list[str]:
    """Return what processes printed; a straggler is killed with all that it started."""
    printed = []
    try:
        for process in processes:
            out, err = process.communicate(timeout=timeout)
            assert process.returncode == 0, err[-4000:]
            printed.append(out)
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            with process:  # Closes its pipes.
                pass
    return printed


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """Return where they wrote, and what rank 0, rank 1 and one alone have told."""
    place = tmp_path_factory.mktemp("hosts")
    address = free_address()
    parts = ["hosts", "spread"]
    printed = finish(
        [
            start(PROCESS, 0, 2, address, place / "rank0", *parts, "trainer"),
            start(PROCESS, 1, 2, address, place / "rank1", *parts, "trainer"),
            start(PROCESS, 0, 1, "", place / "alone", *parts),
        ],
        timeout=150,
    )
    return place, [json.loads(out.splitlines()[-1]) for out in printed]


def stored(trained: tuple[Path, list[Any]], who: str, run: str) -> Run:
    return Store(trained[0] / who).run(run)


def read(value: Any) -> Any:
    """Look into what a ledger holds, whatever it is."""
    return value


def test_no_sink_of_rank_0_changes_a_number_anywhere(trained: Any) -> None:
    _, (first, second, alone) = trained
    for sink in SINKS:
        assert first[sink] == second[sink] == first["plain"]
    # Sums over the devices are added in another order within one process.
    for part in ("losses", "weights"):
        for one, two in zip(first["plain"][part], alone["plain"][part], strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
    assert first["plain"]["seen"] == 3


def test_a_sink_that_fails_costs_its_delivery_alone(trained: Any) -> None:
    _, (first, *_) = trained
    for sink in SINKS:
        assert first[f"{sink} report"] == [True, 0, True]
        run = stored(trained, "rank0", sink)
        assert [row.step for row in run.metrics()] == [1, 2, 2, 3, 4, 4, 5, 6, 6]
        assert run["whole"].steps == run["mean"].steps == [2, 4, 6]
    assert first["memory shows"] == first["slow shows"] == [True, 15]


def test_rank_1_opens_nothing_and_writes_nothing(trained: Any) -> None:
    place, (first, second, _) = trained
    assert not (place / "rank1").exists()
    assert (second["threads"], first["threads"]) == (0, 3)
    for sink in SINKS:
        assert second[f"{sink} shows"] == [False, 0]


@pytest.mark.parametrize("sink", ["memory", "slow"])
def test_values_are_those_of_one_process(trained: Any, sink: str) -> None:
    for name in ("whole", "mean"):
        for step in (2, 4, 6):
            two, one = (
                stored(trained, who, sink)[name][step] for who in ("rank0", "alone")
            )
            assert two.shapes == one.shapes
            assert two.dtypes == one.dtypes
            assert_close(two.values, one.values)
    result = stored(trained, "rank0", sink)["whole"][6]
    expected = np.random.default_rng(0).normal(size=(16, 3)).astype(np.float32)
    np.testing.assert_array_equal(read(result.values)["x"], expected)


def test_rank_0_alone_reads_what_comes_out_of_the_step(trained: Any) -> None:
    _, (first, second, alone) = trained
    assert "values" not in second
    assert len(first["values"]) == 3
    for one, two in zip(first["values"], alone["values"], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


def test_what_no_process_holds_is_put_together(trained: Any) -> None:
    hashes = set()
    for who in ("rank0", "alone"):
        run = stored(trained, who, "spread")
        rows = np.arange(64, dtype=np.float32).reshape(16, 4)
        assert run["whole"].steps == list(range(1, 51))
        for result in run["whole"]:
            np.testing.assert_array_equal(read(result.values)["x"], rows * result.step)
        np.testing.assert_array_equal(read(run.probes["val"].batch)["x"], rows)
        hashes.add(run.probes["val"].hash)
    assert len(hashes) == 1


def test_an_array_of_another_process_costs_its_row_alone(trained: Any) -> None:
    _, (first, _, alone) = trained
    assert (first["lost"], alone["lost"]) == (1, 0)
    (row,) = stored(trained, "rank0", "spread").metrics()
    assert row.metrics == {"rows": 16}


def test_a_run_comes_after_initialize_and_has_an_id(trained: Any) -> None:
    _, (first, second, _) = trained
    for told in (first, second):
        assert "jax.distributed.initialize()" in told["early"]
        assert "then open_run()" in told["early"]
        assert "id=" in told["nameless"]


def test_a_trainer_has_one_id_and_goes_on(trained: Any) -> None:
    place, (first, second, _) = trained
    store = Store(place / "trained")
    (run,) = (run for run in store.runs() if run.id != "taken")
    assert (run.name, run.state) == ("wide", "finished")
    steps = [row.step for row in run.metrics() if "train/loss" in row.metrics]
    assert steps == run["outputs"].steps == [1, 2]
    assert run["outputs"].latest.shapes == {"hidden_0": (4, 8), "hidden_1": (4, 8)}
    assert sorted(p.name for p in (store.root / "checkpoints").iterdir()) == [run.id]
    assert (first["first"], first["second"]) == (second["first"], second["second"])
    for told in (first, second):
        assert "'taken' exists" in told["taken"]
    assert second["taken"].startswith("Process 0: ")


def test_every_ledger_is_whole(trained: Any) -> None:
    place, _ = trained
    for root in ("rank0", "alone", "trained"):
        assert verify(place / root) == []


def assert_close(one: Any, two: Any) -> None:
    if isinstance(one, dict):
        assert list(one) == list(two)
        for key in one:
            assert_close(one[key], two[key])
    else:
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
