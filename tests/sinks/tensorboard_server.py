"""A real TensorBoard server on loopback, read over HTTP as its page reads it."""

import contextlib
import dataclasses
import html
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SAMPLES = "images=1000,text=1000,scalars=5000"
LOADERS = {"default": "true", "python": "false"}
_START_LIMIT = 90.0


@dataclasses.dataclass(frozen=True)
class Board:
    """What one server shows."""

    url: str

    def get(self, path: str, **query: object) -> bytes:
        url = f"{self.url}{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            body: bytes = answer.read()
        return body

    def json(self, path: str, **query: object) -> Any:
        # The endpoints write bare NaN, as browsers' TensorBoard expects.
        return json.loads(self.get(path, **query))

    def runs(self) -> set[str]:
        return set(self.json("/data/runs"))

    def tags(self, plugin: str) -> dict[str, set[str]]:
        """Run -> tags."""
        found = self.json(f"/data/plugin/{plugin}/tags")
        return {run: set(tags) for run, tags in found.items() if tags}

    def images(self, run: str, tag: str) -> list[tuple[int, float, bytes]]:
        """(step, wall time, PNG bytes)."""
        listed = self.json("/data/plugin/images/images", run=run, tag=tag, sample=0)
        return [
            (
                entry["step"],
                entry["wall_time"],
                self.get(f"/data/plugin/images/individualImage?{entry['query']}&x=1"),
            )
            for entry in listed
        ]

    def steps(self, run: str, tag: str) -> list[int]:
        listed = self.json("/data/plugin/images/images", run=run, tag=tag, sample=0)
        return [entry["step"] for entry in listed]

    def scalars(self, run: str, tag: str) -> list[tuple[float, int, float]]:
        """(wall time, step, number)."""
        points = self.json("/data/plugin/scalars/scalars", run=run, tag=tag)
        return [(time_, step, float(number)) for time_, step, number in points]

    def texts(self, run: str, tag: str) -> list[tuple[int, str]]:
        """(step, HTML)."""
        entries = self.json("/data/plugin/text/text", run=run, tag=tag)
        return [(entry["step"], entry["text"]) for entry in entries]


@contextlib.contextmanager
def serve(logdir: Path, loader: str, *, reload: float = 1.0) -> Iterator[Board]:
    """Start a server, wait until it has loaded once, and kill it at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = logdir.parent / f"server-{port}.log"
    command = [
        *(sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir)),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--load_fast", LOADERS[loader], "--samples_per_plugin", SAMPLES),
        *("--reload_interval", str(reload)),
    ]
    # Its own session, because the default loader is a child process of its own.
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "TENSORBOARD_NO_UPDATE": "1"},
        )
    try:
        board = Board(f"http://127.0.0.1:{port}")

        def up() -> bool:
            assert process.poll() is None, log.read_text(errors="replace")
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                board.get("/data/environment")
                return True
            return False

        wait_until(up, _START_LIMIT, "the server does not answer")
        yield board
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait(10)


def wait_until(condition: Callable[[], bool], limit: float, message: str) -> None:
    """Poll until a condition holds; fail after so many seconds."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        with contextlib.suppress(urllib.error.HTTPError):
            if condition():
                return
        time.sleep(0.2)
    raise AssertionError(f"{message} after {limit} s")


def fenced_json(page: str) -> str:
    """Return the code block of a shown text, un-escaped."""
    found = re.search(r"<pre><code[^>]*>(.*?)</code></pre>", page, re.DOTALL)
    assert found, page
    return html.unescape(found[1])
