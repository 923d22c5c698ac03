"""A W&B server of the tests' own: speaks what the client of wandb 0.31 asks for.

It proves what the client sends, and what a server makes of it by the rules that the
client relies on: rows are kept by their offset, config and definitions are replaced
as a whole, a summary too.
"""

import dataclasses
import gzip
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import wandb

from tests.sinks.wandb_place import offline
from tests.sinks.wandb_reader import WandbRun, shown_in
from theseus_track.sinks.conformance import Shown

ENTITY = "tester"
KEY = "local-" + 40 * "a"
_LIMIT = 20.0

Fault = Callable[[str], int | None]
"""Given what is asked for, gives the status to refuse it with, or None."""


class Backend:
    """Keeps the runs that clients send; thread-safe.

    Attributes:
        fault: Asked before each request is answered.
        refused: How many requests it refused.
    """

    def __init__(self) -> None:
        """Start on a free port of the loopback device."""
        self.fault: Fault = lambda _what: None
        self.refused = 0
        self._lock = threading.RLock()
        self._runs: dict[str, dict[str, Any]] = {}
        self._port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Answer; after `stop` on the same port, with all that was sent before."""
        handler = type("Handler", (_Handler,), {"backend": self})
        self._server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", self._port), handler
        )
        self._server.daemon_threads = True
        self._port = self._server.server_port
        threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        ).start()

    def stop(self) -> None:
        """Die: connections are refused from now on."""
        self._server.shutdown()
        self._server.server_close()

    def runs(self) -> dict[str, WandbRun]:
        """Return all runs by id, as the offline files would tell them."""
        with self._lock:
            return {name: _told(run) for name, run in self._runs.items()}

    def shown(self, directory: Path) -> list[Shown]:
        """Return all that finished runs show; files are put into a directory.

        A file that a row names and nobody has sent is an error.
        """
        deadline = time.monotonic() + _LIMIT
        while not all(self.state(name) == "finished" for name in self.runs()):
            assert time.monotonic() < deadline, "a run is not finished"
            time.sleep(0.01)
        with self._lock:
            for name, run in self._runs.items():
                for path, content in run["files"].items():
                    place = directory / name / path
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(content)
        found = self.runs().items()
        runs = [dataclasses.replace(r, files=directory / name) for name, r in found]
        return [shown for run in runs for shown in shown_in(run)]

    def state(self, run_id: str) -> str:
        """Return "running" or "finished"."""
        with self._lock:
            return str(self._runs[run_id]["state"])

    def answer(self, path: str, body: bytes) -> tuple[int, Any]:
        """Return the status and JSON that answer a request."""
        with self._lock:
            what: str = path
            arguments: dict[str, Any] = {}
            if path == "/graphql":
                query = json.loads(body)
                arguments = query.get("variables") or {}
                what = query["query"].split("(")[0].split("{")[0].split()[-1]
            status = self.fault(what)
            if status is not None:
                self.refused += 1
                return status, {"error": HTTPStatus(status).phrase}
            if path.endswith("/file_stream"):
                self._stream(path.split("/")[4], json.loads(body))
                return 200, {"exitcode": None, "limits": {}}
            method = getattr(self, f"_{what}", None)
            return 200, {"data": method(arguments) if method else {}}

    def _Viewer(self, _: Any) -> Any:  # noqa: N802 (the names of W&B's queries)
        return {
            "viewer": {
                "id": "1",
                "entity": ENTITY,
                "username": ENTITY,
                "flags": "{}",
                "teams": {"edges": []},
            }
        }

    def _GetDefaultEntity(self, _: Any) -> Any:  # noqa: N802
        return {"viewer": {"id": "1", "entity": ENTITY}}

    def _UpsertBucket(self, given: Any) -> Any:  # noqa: N802
        name = given["name"]
        new = name not in self._runs
        run = self._runs.setdefault(
            name,
            {
                "name": name,
                "rows": {},
                "files": {},
                "summary": {},
                "config": {},
                "state": "running",
            },
        )
        run["state"] = "running" if new else run["state"]
        kept = ("project", "entity", "groupName", "displayName", "jobType", "tags")
        run |= {key: given[key] for key in kept if given.get(key)}
        if given.get("config"):
            run["config"] = json.loads(given["config"])
        project = {"id": "1", "name": run["project"], "entity": _ENTITY}
        bucket = {
            "id": name,
            "name": name,
            "displayName": run.get("displayName"),
            "config": "{}",
            "historyLineCount": 0,
            "project": project,
        }
        return {"upsertBucket": {"bucket": bucket, "inserted": new}}

    def _Run(self, given: Any) -> Any:  # noqa: N802
        run = self._runs.get(given["name"])
        known = run and {
            "id": run["name"],
            "name": run["name"],
            "projectId": "1",
            "displayName": run.get("displayName"),
            "state": run["state"],
            "config": json.dumps(run["config"]),
            "group": run.get("groupName"),
            "tags": [],
            "createdAt": "2026-01-01T00:00:00Z",
            "summaryMetrics": json.dumps(run["summary"]),
            "historyLineCount": len(run["rows"]),
            "user": {"name": ENTITY, "username": ENTITY},
        }
        return {"project": {"run": known}}

    def _RunResumeStatus(self, given: Any) -> Any:  # noqa: N802
        run = self._runs.get(given["name"])
        if run is not None:
            run["state"] = "running"
        bucket = run and {
            "id": run["name"],
            "name": run["name"],
            "displayName": run.get("displayName"),
            "summaryMetrics": json.dumps(run["summary"]),
            "config": json.dumps(run["config"]),
            "historyLineCount": len(run["rows"]),
            "historyTail": json.dumps([*map(json.dumps, _rows(run)[-1:])]),
            "eventsLineCount": 0,
            "eventsTail": "[]",
            "logLineCount": 0,
            "tags": [],
            "wandbConfig": json.dumps({"t": {"1": 1}}),
        }
        return {
            "model": {
                "id": "1",
                "name": given["project"],
                "entity": _ENTITY,
                "bucket": bucket,
            }
        }

    def _RunHistoryKeys(self, given: Any) -> Any:  # noqa: N802
        last = max(
            (row["_step"] for row in _rows(self._runs[given["name"]])), default=-1
        )
        return {"project": {"run": {"historyKeys": {"lastStep": last, "keys": {}}}}}

    def _RunParquetHistory(self, _: Any) -> Any:  # noqa: N802
        # Nothing was exported yet: all is asked for by pages.
        history: dict[str, Any] = {"parquetUrls": [], "liveData": []}
        return {"project": {"run": {"parquetHistory": history}}}

    def _SampledHistoryPage(self, given: Any) -> Any:  # noqa: N802
        spec = json.loads(given["spec"])
        low, high = spec["minStep"], spec["maxStep"]
        rows = [
            {key: row[key] for key in spec["keys"]}
            for row in _rows(self._runs[given["run"]])
            if low <= row["_step"] <= high and row.keys() >= set(spec["keys"])
        ]
        assert len(rows) <= spec["samples"], "some of the rows would be left out"
        return {"project": {"run": {"sampledHistory": [rows]}}}

    def _CreateRunFiles(self, given: Any) -> Any:  # noqa: N802
        files = [
            {"name": name, "uploadUrl": f"{self.url}/upload/{given['run']}/{name}"}
            for name in given["files"]
        ]
        return {
            "createRunFiles": {
                "runID": given["run"],
                "uploadHeaders": [],
                "files": files,
            }
        }

    def _ArtifactType(self, _: Any) -> Any:  # noqa: N802
        return {"project": None}

    def _CreateArtifact(self, _: Any) -> Any:  # noqa: N802
        # What a server says that has the very same artifact already.
        sequence = {"latestArtifact": {"id": "a"}}
        return {
            "createArtifact": {
                "artifact": {
                    "id": "a",
                    "state": "COMMITTED",
                    "artifactSequence": sequence,
                }
            }
        }

    def _stream(self, name: str, sent: Any) -> None:
        run = self._runs[name]
        for file, chunk in (sent.get("files") or {}).items():
            lines = [json.loads(line) for line in chunk["content"]]
            if file == "wandb-history.jsonl":
                run["rows"].update(enumerate(lines, chunk["offset"]))
            elif file == "wandb-summary.json":
                run["summary"] = lines[-1]
        if sent.get("complete"):
            run["state"] = "finished"

    def keep(self, path: str, content: bytes) -> None:
        """Take an uploaded file."""
        run, _, name = path.removeprefix("/upload/").partition("/")
        with self._lock:
            self._runs[run]["files"][name] = content


_ENTITY = {"id": "2", "name": ENTITY}


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    """Set W&B up to send to a server of this test."""
    backend = Backend()
    for name, value in online(tmp_path / "wandb", backend).items():
        monkeypatch.setenv(name, value)
    settings = wandb.Settings(
        root_dir=str(tmp_path / "wandb"),
        mode="online",
        base_url=backend.url,
        api_key=KEY,
        console="off",
    )
    # wandb reads the environment once in a process, and keeps its connections.
    wandb.teardown()
    wandb.setup(settings)
    yield backend
    wandb.teardown()
    backend.stop()


def online(directory: Path, backend: Backend) -> dict[str, str]:
    """Return the environment of a process that sends to a backend."""
    there = {"WANDB_MODE": "online", "WANDB_BASE_URL": backend.url}
    return {**offline(directory), **there, "WANDB_API_KEY": KEY}


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers one connection."""

    backend: Backend

    def do_GET(self) -> None:
        self._say(404, {})

    def do_PUT(self) -> None:
        self.backend.keep(self.path, self._body())
        self._say(200, {})

    def do_POST(self) -> None:
        self._say(*self.backend.answer(self.path, self._body()))

    def log_message(self, *_: Any) -> None:
        pass

    def _body(self) -> bytes:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        zipped = self.headers.get("Content-Encoding") == "gzip"
        return gzip.decompress(body) if zipped else body

    def _say(self, status: int, answer: Any) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _rows(run: dict[str, Any]) -> list[dict[str, Any]]:
    return [run["rows"][offset] for offset in sorted(run["rows"])]


def _told(run: dict[str, Any]) -> WandbRun:
    config = {key: entry["value"] for key, entry in run["config"].items()}
    definitions = config.pop("_wandb", {}).get("m", [])
    names = [str(entry.get("1", entry.get("2"))) for entry in definitions]
    steps_of = {
        name: names[entry["5"] - 1]
        for name, entry in zip(names, definitions, strict=True)
        if entry.get("5")
    }
    return WandbRun(
        id=run["name"],
        run=SimpleNamespace(
            project=run.get("project"),
            entity=run.get("entity") or ENTITY,
            display_name=run.get("displayName"),
            run_group=run.get("groupName"),
            job_type=run.get("jobType"),
        ),
        files=Path(),
        rows=[dict(row) for row in _rows(run)],
        summary=dict(run["summary"]),
        config=config,
        steps_of=steps_of,
        hidden={
            name
            for name, entry in zip(names, definitions, strict=True)
            if 2 in entry.get("6", ())
        },
    )
