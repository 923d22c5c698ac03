"""A dashboard beside three writers: no error on either side, nothing half shown."""

import base64
import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.web.serving import ask, free_port, serving
from theseus_track.dashboard import Library, create_app
from theseus_track.store import Store, verify

PROJECT = Path(__file__).parents[2]

# One run after the other until the time is over: each cell holds the step.
WRITE = """
import sys, time
from pathlib import Path
import numpy as np
from tests.store.ledgers import metrics, new_figure, new_values, writer
from theseus_track.records import View
from theseus_track.store import NewPart
root, number, seconds = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
end, runs = time.monotonic() + seconds, 0
while time.monotonic() < end:
    with writer(root, f"w{number}-{runs}") as ledger:
        for step in range(25 if number != "0" else 10**9):
            cells = np.full((16, 16), step, np.float32)
            (ref,) = ledger.append(new_values(step, cells))
            view = View(kind="heatmap", arrays={"values": cells})
            part = NewPart(part="", kind="figure", blobs={"png": b"p"}, view=view)
            drawn = new_figure(step, ref, parts=(part,))
            ledger.append(drawn, metrics(step, loss=float(step)))
            time.sleep(0.01)
            if time.monotonic() > end:
                break
    runs += 1
print(runs)
"""


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(3, marks=pytest.mark.slow),  # three writers for that long
        pytest.param(60, marks=[pytest.mark.soak, pytest.mark.timeout(300)]),
    ],
)
def test_a_dashboard_beside_writers_shows_only_what_is_whole(
    tmp_path: Path, seconds: int
) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, str(tmp_path), str(number), str(seconds)],
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    library, port, rounds = Library([tmp_path]), free_port(), 0
    told: set[str] = set()
    done = threading.Event()
    with serving(create_app(library, ending=done.is_set), port):
        follower = threading.Thread(target=_follow, args=(port, told, done))
        follower.start()
        while any(process.poll() is None for process in writers):
            _check_round(port)
            rounds += 1
        _check_round(port)
        keys = {run["key"] for run in _json(port, "/api/runs")["runs"]}
        # The stream ends only after it told of every run: a page needs no reload.
        while not keys <= told:
            assert follower.is_alive()
            follower.join(0.05)
        done.set()
        follower.join()
    counts = [_count(process) for process in writers]
    assert rounds > 0
    assert sum(counts) == len(keys)
    assert verify(tmp_path) == []
    runs = {run.dir: run for run in Store(tmp_path).runs()}
    for index in library.runs().values():
        whole = runs[index.dir]
        assert index.totals().steps == len(whole.steps)
        assert index.state == whole.state == "finished"


def _count(process: "subprocess.Popen[str]") -> int:
    out, problems = process.communicate()
    assert (process.returncode, problems) == (0, "")
    return int(out)


def _check_round(port: int) -> None:
    listed = _json(port, "/api/runs")
    runs = listed["runs"][-5:]
    assert all(run["damaged"] == 0 for run in listed["runs"])
    for run in runs:
        # A run that was only just made has nothing to show yet.
        if "activations" in run["analyses"]:
            _check_panel(port, run)
            _check_film(port, run["key"])


def _check_panel(port: int, run: Any) -> None:
    target = f"/api/views?name=activations&run={run['key']}&step={10**9}"
    (panel,) = _json(port, target)["panels"]
    assert panel["error"] is None
    assert panel["missing"] is None
    # Values whose figure is still being drawn are shown as they are.
    (view,) = (panel["views"] or panel["fallback"]).values()
    assert (_array(view["arrays"]["values"]) == panel["step"]).all()


def _check_film(port: int, key: str) -> None:
    film = _json(port, f"/api/runs/{key}/film?name=activations&cells=2")
    assert film["skipped"] == []
    expected = np.broadcast_to(np.array(film["steps"])[:, None, None], _shape(film))
    np.testing.assert_array_equal(_array(film["frames"]), expected)
    assert film["steps"] == [*range(len(film["steps"]))]


def _shape(film: Any) -> tuple[int, ...]:
    """Return [step, row, column]."""
    return (len(film["steps"]), *film["shape"])


def _follow(port: int, told: set[str], done: threading.Event) -> None:
    for line in _events(port):
        told.update(json.loads(line)["runs"])
        if done.is_set():
            return


def _events(port: int) -> Iterator[str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/api/events")
    for line in connection.getresponse():
        if line.startswith(b"data: "):
            yield line.removeprefix(b"data: ").decode()
    connection.close()


def _array(value: Any) -> np.ndarray:
    data = base64.b64decode(value["data"])
    return np.frombuffer(data, value["dtype"]).reshape(value["shape"])


def _json(port: int, target: str) -> Any:
    answer = ask(port, target)
    assert answer.status == 200, answer.body
    return json.loads(answer.body)
