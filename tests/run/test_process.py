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
