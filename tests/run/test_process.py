"""Real processes: killed at any moment, or ending without a close."""

import random
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from theseus_track.store import Store, verify

WRITER = Path(__file__).with_name("writer_process.py")


@pytest.mark.slow  # starts and kills six processes
def test_what_was_acknowledged_before_a_kill_is_there_afterwards(
    tmp_path: Path,
) -> None:
    moments = random.Random(7)
    for attempt in range(6):
        command = [sys.executable, str(WRITER), str(tmp_path), str(tmp_path / "tb")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            time.sleep(moments.uniform(0, 0.3))
            process.kill()
            acknowledged = max(map(int, [first, *process.stdout.read().split()]))
        run = Store(tmp_path).run("killed")
        assert [row.step for row in run.metrics()][: acknowledged + 1] == list(
            range(acknowledged + 1)
        ), attempt
        results = {result.step: result.table for result in run["table"]}
        for step in range(acknowledged + 1):
            assert results[step] == {"step": step}
        assert verify(tmp_path) == []
        assert run.state == "stopped"


@pytest.mark.slow  # starts a process that imports JAX and renders
def test_a_process_that_forgets_to_close_loses_nothing(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import sys
        import numpy as np
        from matplotlib.figure import Figure
        from theseus_track import open_run
        import jax
        run = open_run(sys.argv[1], id="left")
        figure = Figure()
        figure.add_subplot().plot(np.arange(3))
        for step in range(4):
            run.log_metrics({"loss": 1.0}, step=step)
            run.log_result("curve", figure, step=step)
        # open_run and logging start no backend.
        from jax.extend import backend
        assert not jax._src.xla_bridge.backends_are_initialized()
        """
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    run = Store(tmp_path).run("left")
    assert run["curve"].steps == [0, 1, 2, 3]
    assert all(result.figure is not None for result in run["curve"])
    assert len(run.metrics()) == 4
    assert run.state == "finished"


@pytest.mark.slow  # starts four processes
def test_processes_that_start_at_once_share_a_root_that_is_not_there_yet(
    tmp_path: Path,
) -> None:
    script = textwrap.dedent(
        """
        import sys
        import time
        from pathlib import Path
        from theseus_track import open_run
        root, place, start, name, number = sys.argv[1:]
        print("ready", flush=True)
        while not Path(start).exists():
            time.sleep(0.001)
        run = open_run(root, id=name, sinks=[f"tensorboard:{place}"])
        run.log_metrics({"number": int(number)}, step=int(number))
        run.log_result(f"table-{number}", {"number": int(number)}, step=int(number))
        assert run.close().complete
        """
    )
    root, start = tmp_path / "new" / "root", tmp_path / "start"
    command = [sys.executable, "-W", "error", "-c", script]
    places = [str(root), str(tmp_path / "new" / "tb"), str(start)]
    names = ["shared", "shared", "own-2", "own-3"]
    processes = [
        subprocess.Popen(
            [*command, *places, name, str(number)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, name in enumerate(names)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        start.touch()
        for process in processes:
            _, err = process.communicate(timeout=60)
            assert process.returncode == 0, err
    finally:
        for process in processes:
            with process:  # Closes its pipes.
                process.kill()

    store = Store(root)
    assert {run.id for run in store.runs()} == set(names)
    assert verify(root) == []
    for number, name in enumerate(names):
        # The last to come to a run goes on with it, from its own first step.
        (result,) = store.run(name).results(f"table-{number}", superseded=True)
        assert result.table == {"number": number}
    assert len(list(store.run("shared").dir.glob("*.jsonl"))) == 2
