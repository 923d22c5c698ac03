"""How fast the dashboard's server answers on a large root, and the memory it takes.

Run it: `python tests/benchmarks/dashboard.py [RUNS] [STEPS]`, or with `--root DIR` to
keep the ledger and find it again. It fills a ledger with 4 analyses in each run, serves
it as the command does, and prints seconds and megabytes. The budgets, for 300 runs of
200 steps: the first answer that a page can draw in 2 s, a step of 4 panels in 100 ms,
a film of 200 steps in 200 ms, and 300 MB.
"""

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from theseus_track.records import MetricsRecord, RunInfo, View
from theseus_track.store import LedgerWriter, NewPart, NewResult, NewValues

ANALYSES = ("activations", "attention", "norms", "logits")
CELLS = (64, 128)
"""The heatmaps of the first run; the others have small ones, to spare the disk."""


def fill(root: Path, runs: int, steps: int) -> None:
    """Write runs with values, a View and metrics at every step."""
    rng = np.random.default_rng(0)
    for number in range(runs):
        info = RunInfo(
            project="bench",
            name=f"run-{number}",
            id=f"r{number}",
            created=float(number),
            config={"seed": number, "lr": 1e-3, "model": {"layers": 6}},
        )
        shape = CELLS if number == 0 else (16, 16)
        with LedgerWriter.create(root, info) as writer:
            for step in range(steps):
                _evaluate(writer, step, rng.standard_normal(shape, np.float32))


def _evaluate(writer: LedgerWriter, step: int, value: np.ndarray) -> None:
    numbers = {"train/loss": 1.0 / (step + 1), "eval/loss": 2.0 / (step + 1)}
    values = [
        NewValues(
            key=f"my/{name}",
            name=name,
            paths=("blocks_0/attn",),
            step=step * 10,
            wall_time=float(step),
            computed=float(step),
            value=value,
            probe="0" * 64,
            measure="1" * 64,
        )
        for name in ANALYSES
    ]
    row = MetricsRecord(step=step * 10, wall_time=float(step), metrics=numbers)
    refs = writer.append(*values, row)
    view = View(kind="heatmap", arrays={"values": value}, labels={"x": "Feature"})
    part = NewPart(part="", kind="figure", blobs={"png": b"png"}, view=view)
    writer.append(
        *(
            NewResult(
                key=f"my/{name}",
                name=name,
                step=step * 10,
                wall_time=float(step),
                parts=(part,),
                paths=("blocks_0/attn",),
                values=ref,
            )
            for name, ref in zip(ANALYSES, refs, strict=False)
        )
    )


class Client:
    """A browser's requests, one after the other."""

    def __init__(self, link: str, server: int) -> None:
        """Exchange the link for a cookie; `server` is the process that answers."""
        self.server = server
        host, rest = re.fullmatch(r"http://([^/]+)(/.*)", link.strip()).groups()  # type: ignore[union-attr]
        self._connection = http.client.HTTPConnection(host, timeout=120)
        self._headers: dict[str, str] = {"Accept-Encoding": "gzip"}
        self._connection.request("GET", rest)
        answer = self._connection.getresponse()
        answer.read()
        self._headers["Cookie"] = answer.headers["set-cookie"].split(";")[0]

    def ask(self, what: str, target: str) -> bytes:
        """Ask, and say how long it took and how much came."""
        begin, busy = time.perf_counter(), _processor(self.server)
        self._connection.request("GET", target, headers=self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        took = time.perf_counter() - begin
        if what:
            busy = 1000 * (_processor(self.server) - busy)
            sent = f"{len(body) / 1000:.0f} kB"
            _say(f"{what}: {1000 * took:.0f} ms, {busy:.0f} ms of CPU, {sent}")
        if answer.status != 200:
            raise SystemExit(f"{target}: {answer.status} {body!r:.200}")
        return body

    def json(self, what: str, target: str) -> Any:
        """Ask for JSON."""
        self._headers["Accept-Encoding"] = "identity"
        return json.loads(self.ask(what, target))


def measure(root: Path) -> None:
    """Serve the root in a fresh process, and ask what pages ask."""
    words = ["-m", "theseus_track.cli", "dashboard", str(root), "--port", "0"]
    begin = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *words, "--no-open"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as server:
        try:
            assert server.stdout is not None
            link = server.stdout.readline().removeprefix("Dashboard: ")
            _say(f"start to link: {time.perf_counter() - begin:.2f} s")
            client = Client(link, server.pid)
            client.ask("table of runs, first", "/api/runs")
            _say(f"start to first table: {_since(begin, server.pid)}")
            _pages(client)
            _index(client, begin)
            _pages(client)
            _say(f"memory: {_memory(server.pid)}")
        finally:
            server.terminate()


def _pages(client: Client) -> None:
    runs = client.json("", "/api/runs")["runs"]
    keys = [run["key"] for run in runs[-4:]]
    chosen = "&".join(f"run={key}" for key in keys)
    client.ask("4 panels of a step", f"/api/views?name=attention&step=700&{chosen}")
    client.ask("4 panels of the next", f"/api/views?name=attention&step=710&{chosen}")
    client.ask("curves of 4 runs", f"/api/metrics?{chosen}")
    first = next(run["key"] for run in runs if run["id"] == "r0")
    client.ask("film", f"/api/runs/{first}/film?name=activations")
    client.ask("table of runs", "/api/runs")


def _index(client: Client, begin: float) -> None:
    while True:
        state = client.json("", "/api/runs")["indexing"]
        if state["done"] == state["total"]:
            break
        time.sleep(1)
    since = _since(begin, client.server)
    _say(f"start to all of {state['total']} indexed: {since}")


def _since(begin: float, process: int) -> str:
    took = time.perf_counter() - begin
    return f"{took:.2f} s, {_processor(process):.2f} s of CPU"


def _processor(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(process: int) -> str:
    status = Path(f"/proc/{process}/status").read_text()
    found = re.findall(r"(VmRSS|VmHWM):\s+(\d+) kB", status)
    return ", ".join(f"{name} {int(kilo) / 1000:.0f} MB" for name, kilo in found)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Fill and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=300)
    parser.add_argument("steps", nargs="?", type=int, default=200)
    parser.add_argument("--root", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root: Path = given.root or Path(temporary)
        if not (root / "runs").is_dir():
            fill(root, given.runs, given.steps)
        measure(root)


if __name__ == "__main__":
    main()
