"""The Renderer and its worker process."""

import importlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from theseus_track.analysis.figures import heatmap, view_of
from theseus_track.errors import RenderError
from theseus_track.render import Renderer, normalise, private_pyplot
from theseus_track.render.files import figure_files

# Each starts one or more workers of its own, which takes the better part of a second.
STARTS_WORKERS = pytest.mark.slow
POSIX = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")


@pytest.fixture(scope="module")
def renderer():
    made = Renderer(timeout=60)
    yield made
    made.close()


@pytest.fixture
def own_renderer():
    made = Renderer(timeout=60)
    yield made
    made.close()


def simple_figure(title="a title"):
    figure = Figure(figsize=(3, 2), dpi=60)
    FigureCanvasAgg(figure)
    figure.subplots().set_title(title)
    return figure


class Slow:
    """Sleeps in the worker while it is unpickled; pickled by reference to time."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __reduce__(self):
        return time.sleep, (self.seconds,)


class Deadly:
    """Kills whoever unpickles it, by a signal."""

    def __init__(self, number):
        self.number = number

    def __reduce__(self):
        return signal.raise_signal, (self.number,)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_a_figure_becomes_png_and_pdf(renderer):
    (part,) = renderer.render(normalise(simple_figure()))
    assert (part.part, part.kind, part.view) == ("", "figure", None)
    assert part.blobs["png"].startswith(b"\x89PNG")
    assert part.blobs["pdf"].startswith(b"%PDF-")
    assert b"/FontFile2" in part.blobs["pdf"]


def test_json_becomes_strict_indented_json(renderer):
    (part,) = renderer.render(normalise({"a": float("inf"), "é": [1]}))
    text = part.blobs["json"].decode("ascii")
    assert json.loads(text, parse_constant=pytest.fail) == {"a": "Infinity", "é": [1]}
    assert text.startswith('{\n  "a"')
    assert part.kind == "json"


def test_parts_keep_their_order_and_names(renderer):
    parts = renderer.render(normalise({"b": simple_figure(), "a": {"x": 1}}))
    assert [(part.part, part.kind) for part in parts] == [
        ("b", "figure"),
        ("a", "json"),
    ]


def test_nothing_gives_nothing_and_starts_no_worker(own_renderer):
    assert own_renderer.render(normalise(None)) == ()
    assert own_renderer.render(normalise({"x": 1}))[0].kind == "json"
    assert own_renderer.worker_pid is None


def test_worker_and_thread_give_the_same_bytes(renderer):
    figure = heatmap(np.arange(12.0).reshape(3, 4), title=r"$\theta_1$")
    (part,) = renderer.render(normalise(figure))
    with private_pyplot():
        assert dict(part.blobs) == figure_files(figure)


def test_settings_of_the_calling_thread_reach_the_worker(renderer):
    figure = simple_figure()
    plain = renderer.render(normalise(figure))[0].blobs["png"]
    with private_pyplot():
        matplotlib.rcParams["savefig.facecolor"] = "red"
        changed = renderer.render(normalise(figure))[0].blobs["png"]
    assert changed != plain
    assert renderer.render(normalise(figure))[0].blobs["png"] == plain


def test_the_view_stays_here_and_is_returned(renderer):
    figure = heatmap(np.eye(3))
    (part,) = renderer.render(normalise(figure))
    assert part.view is view_of(figure)


def test_figures_of_pyplot_leave_none_open_in_the_worker(renderer):
    # At the 21st open figure matplotlib would warn in the worker, which is told.
    for _ in range(22):
        with private_pyplot():
            figure = plt.figure(figsize=(1, 1), dpi=20)
            (part,) = renderer.render(normalise(figure))
        assert part.blobs["png"]
    assert renderer._told == set()


def test_a_figure_that_cannot_be_drawn_is_an_error_that_names_the_part(renderer):
    figure = simple_figure()
    figure.axes[0].imshow(np.eye(3), norm="log").set_clim(-1, -2)
    with pytest.raises(RenderError, match=r"'bad'.*vmin") as caught:
        renderer.render({"bad": figure})
    cause: Any = caught.value.__cause__
    assert any("worker" in note for note in cause.__notes__)
    assert renderer.render(normalise(simple_figure()))[0].blobs["png"]


def test_an_unpicklable_figure_is_drawn_here_and_told_once(own_renderer, caplog):
    figure = simple_figure()
    figure.lock = threading.Lock()
    with caplog.at_level(logging.WARNING, "theseus_track.render.renderer"):
        first = own_renderer.render(normalise(figure))[0].blobs
        second = own_renderer.render(normalise(figure))[0].blobs
    assert first == second
    assert first["png"].startswith(b"\x89PNG")
    assert [record.message for record in caplog.records] == [caplog.messages[0]]
    assert "cannot be pickled" in caplog.messages[0]
    assert own_renderer.worker_pid is None


@STARTS_WORKERS
def test_a_figure_that_cannot_be_rebuilt_is_drawn_here_and_told_once(
    own_renderer, caplog
):
    figure = simple_figure()
    figure.mine = type("Gone", (), {})
    figure.mine.__module__, figure.mine.__qualname__ = "gone_module", "Gone"
    module: Any = type(sys)("gone_module")
    module.Gone = figure.mine
    sys.modules["gone_module"] = module
    try:
        for _ in range(2):
            (part,) = own_renderer.render(normalise(figure))
    finally:
        del sys.modules["gone_module"]
    assert part.blobs["png"].startswith(b"\x89PNG")
    assert ["cannot be rebuilt" in message for message in caplog.messages] == [True]


@STARTS_WORKERS
def test_a_print_while_drawing_does_not_disturb(own_renderer, tmp_path, monkeypatch):
    (tmp_path / "chatty_module.py").write_text(
        "import os\n"
        "print('to stdout')\n"
        "os.write(1, b'to descriptor 1')\n"
        "class Thing: pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    chatty_module = importlib.import_module("chatty_module")

    figure = simple_figure()
    figure.thing = chatty_module.Thing()
    (part,) = own_renderer.render(normalise(figure))
    assert part.blobs["png"].startswith(b"\x89PNG")
    assert own_renderer._told == set()


@STARTS_WORKERS
def test_missing_glyphs_are_told_in_one_line(own_renderer, caplog):
    figure = simple_figure("日本語のトークン")
    own_renderer.render(normalise(figure))
    own_renderer.render(normalise(figure))
    assert len(caplog.messages) == 1
    assert "boxes" in caplog.messages[0]


@STARTS_WORKERS
@POSIX
def test_a_worker_killed_in_the_middle_is_replaced_and_the_job_done(own_renderer):
    own_renderer.render(normalise(simple_figure()))
    first = own_renderer.worker_pid
    figure = simple_figure()
    figure.slow = Slow(1.0)
    killer = threading.Timer(0.4, os.kill, (first, signal.SIGKILL))
    killer.start()
    (part,) = own_renderer.render(normalise(figure))
    killer.join()
    assert part.blobs["png"].startswith(b"\x89PNG")
    assert own_renderer.worker_pid not in (None, first)
    assert own_renderer._told == set()


@STARTS_WORKERS
@POSIX
def test_a_worker_killed_between_jobs_is_replaced(own_renderer):
    own_renderer.render(normalise(simple_figure()))
    first = own_renderer.worker_pid
    os.kill(first, signal.SIGKILL)
    assert own_renderer.render(normalise(simple_figure()))[0].blobs["png"]
    assert own_renderer.worker_pid not in (None, first)


@STARTS_WORKERS
@POSIX
def test_a_figure_that_kills_every_worker_is_drawn_here(own_renderer, caplog):
    figure = simple_figure()
    figure.deadly = Deadly(signal.SIGKILL)
    (part,) = own_renderer.render(normalise(figure))
    assert part.blobs["png"].startswith(b"\x89PNG")
    assert ["twice" in message for message in caplog.messages] == [True]


@STARTS_WORKERS
@POSIX
def test_a_figure_that_crashes_every_worker_is_not_drawn_here(own_renderer):
    figure = simple_figure()
    figure.deadly = Deadly(signal.SIGSEGV)
    with pytest.raises(RenderError, match="SIGSEGV"):
        own_renderer.render(normalise(figure))
    assert own_renderer.render(normalise(simple_figure()))[0].blobs["png"]


# In a process of its own: a signal to the one that runs the tests may reach any of
# the libraries that other tests have loaded into it.
INTERRUPTED = """
import signal, threading
from tests.render.test_renderer import Slow, simple_figure
from theseus_track.render import Renderer, normalise

if __name__ == "__main__":
    renderer = Renderer()
    figure = simple_figure("slow")
    figure.slow = Slow(2.0)
    expected = renderer.render(normalise(simple_figure("next")))[0].blobs
    main = threading.main_thread().ident
    timer = threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    try:
        renderer.render(normalise(figure))
    except KeyboardInterrupt:
        print("interrupted")
    timer.join()
    assert renderer.render(normalise(simple_figure("next")))[0].blobs == expected
    renderer.close()
    print("as expected")
"""


@POSIX
@STARTS_WORKERS
def test_an_interrupted_job_does_not_answer_the_next_one(tmp_path):
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.stdout.split("\n")[:2] == ["interrupted", "as expected"], done.stderr


@STARTS_WORKERS
def test_a_hanging_job_ends_at_the_timeout():
    renderer = Renderer(timeout=1.5)
    figure = simple_figure()
    figure.slow = Slow(300)
    with pytest.raises(RenderError, match=r"1\.5 s"):
        renderer.render(normalise(figure))
    renderer.close()


@STARTS_WORKERS
@POSIX
def test_a_stopped_worker_cannot_block_a_large_job():
    renderer = Renderer(timeout=60)
    renderer.render(normalise(simple_figure()))
    renderer._timeout = 1.0
    pid = renderer.worker_pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    figure = simple_figure()
    figure.large = np.zeros(1_000_000)
    with pytest.raises(RenderError, match="1 s"):
        renderer.render(normalise(figure))
    renderer.close()


@STARTS_WORKERS
@POSIX
def test_the_worker_ignores_ctrl_c(own_renderer):
    own_renderer.render(normalise(simple_figure()))
    pid = own_renderer.worker_pid
    os.kill(pid, signal.SIGINT)
    assert os.getpgid(pid) != os.getpgid(0)
    assert own_renderer.render(normalise(simple_figure()))[0].blobs["png"]
    assert own_renderer.worker_pid == pid


@STARTS_WORKERS
def test_close_ends_the_worker_and_is_idempotent():
    renderer = Renderer()
    renderer.render(normalise(simple_figure()))
    pid = renderer.worker_pid
    renderer.close()
    renderer.close()
    assert not alive(pid)
    with pytest.raises(RenderError, match="closed"):
        renderer.render(normalise(simple_figure()))


@STARTS_WORKERS
def test_close_does_not_wait_longer_than_told():
    renderer = Renderer(timeout=60)
    renderer.render(normalise(simple_figure()))
    figure = simple_figure()
    figure.slow = Slow(300)
    caught = []

    def draw():
        try:
            renderer.render(normalise(figure))
        except RenderError as error:
            caught.append(error)

    thread = threading.Thread(target=draw)
    thread.start()
    assert wait_until(renderer._lock.locked)
    renderer.close(0.2)
    thread.join(20)
    assert not thread.is_alive()
    assert len(caught) == 1


PARENT = """
import sys, time
from matplotlib.figure import Figure
from theseus_track.render import Renderer
renderer = Renderer()
renderer.render({"": Figure()})
print(renderer.worker_pid, flush=True)
END
"""


def start_parent(end):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.Popen(
        [sys.executable, "-c", PARENT.replace("END", end)],
        stdout=subprocess.PIPE,
        text=True,
        env=env,
    )


@STARTS_WORKERS
@POSIX
@pytest.mark.parametrize(
    "end",
    [
        "time.sleep(300)",
        "import os\nif os.fork() == 0: time.sleep(20)\ntime.sleep(300)",
    ],
    ids=["alone", "with a forked child that holds the pipe"],
)
def test_the_worker_ends_with_a_killed_parent(end):
    with start_parent(end) as parent:
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.kill()
        assert wait_until(lambda: not alive(pid))


@STARTS_WORKERS
def test_the_worker_ends_with_a_parent_that_forgot_to_close():
    with start_parent("sys.exit(0)") as parent:
        pid = int(parent.stdout.readline())
        assert parent.wait(20) == 0
        assert wait_until(lambda: not alive(pid))


@STARTS_WORKERS
def test_the_worker_has_the_path_and_no_jax(own_renderer, tmp_path, monkeypatch):
    report = tmp_path / "report.json"
    (tmp_path / "spy_module.py").write_text(
        "import json, os, sys\n"
        "def spy(file):\n"
        "    names = ['JAX_PLATFORMS', 'CUDA_VISIBLE_DEVICES', 'OMP_NUM_THREADS']\n"
        "    told = {'path': sys.path, 'jax': 'jax' in sys.modules,\n"
        "            'env': {n: os.environ.get(n) for n in names}}\n"
        "    open(file, 'w').write(json.dumps(told))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    spy_module = importlib.import_module("spy_module")

    class Spy:
        def __reduce__(self):
            return spy_module.spy, (str(report),)

    figure: Any = heatmap(np.eye(3))
    figure.spy = Spy()
    own_renderer.render(normalise(figure))
    told = json.loads(report.read_text())
    assert told["path"] == [entry or str(Path.cwd()) for entry in sys.path]
    assert told["jax"] is False
    assert told["env"] == {
        "JAX_PLATFORMS": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
    }


def test_a_part_may_be_named_like_a_path(renderer):
    (part,) = renderer.render({"blocks_0/attn": heatmap(np.eye(2))})
    assert part.part == "blocks_0/attn"
