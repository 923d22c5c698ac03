"""The addresses of the dashboard, asked through a real server."""

import base64
import importlib.resources
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.store.ledgers import (
    PDF,
    PNG,
    evaluate,
    metrics,
    new_figure,
    run_info,
    table_part,
    writer,
)
from tests.web.serving import Answer, ask, free_port, serving
from theseus_track.dashboard import Library, create_app
from theseus_track.store import LedgerWriter

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("root")
    with writer(directory) as ledger:
        for step in (10, 20):
            evaluate(ledger, step)
        table = table_part('{"score": "NaN"}')
        ledger.append(
            new_figure(20, name="table", parts=(table,)),
            metrics(20, loss=1.5),
            metrics(30, accuracy=0.25),
        )
    info = run_info("hostile", name=HOSTILE, project=HOSTILE, tags=(HOSTILE,))
    with LedgerWriter.create(directory, info) as ledger:
        ledger.append(metrics(1, **{HOSTILE: 1.0}))
    return directory


@pytest.fixture(scope="module")
def port(root: Path) -> Iterator[int]:
    number = free_port()
    with serving(create_app(Library([root])), number):
        yield number


def _json(port: int, target: str) -> Any:
    answer = ask(port, target)
    assert answer.status == 200, answer.body
    return json.loads(answer.body)


def _run(port: int) -> Any:
    (run,) = [r for r in _json(port, "/api/runs")["runs"] if r["id"] == "r1"]
    return run


def _result(port: int, **wanted: object) -> Any:
    base = f"/api/runs/{_run(port)['key']}/results"
    found = _json(port, base)["results"]
    (known,) = [r for r in found if wanted.items() <= r.items()]
    return _json(port, f"{base}/{known['writer']}/{known['seq']}")


def test_a_run_has_its_last_metrics_and_no_directory(port: int, root: Path) -> None:
    run = _run(port)
    assert run["last"] == {"loss": 1.5, "accuracy": 0.25}
    assert run["last_step"] == 30
    assert run["state"] == "finished"
    assert str(root) not in json.dumps(run)


def test_metrics_come_by_step(port: int) -> None:
    rows = _json(port, f"/api/runs/{_run(port)['key']}/metrics")["metrics"]
    assert [(row["step"], row["metrics"]) for row in rows] == [
        (20, {"loss": 1.5}),
        (30, {"accuracy": 0.25}),
    ]


def test_a_view_comes_with_its_values(port: int) -> None:
    view = _result(port, name="activations", step=20)["views"][""]
    array = view["arrays"]["values"]
    data = np.frombuffer(base64.b64decode(array["data"]), f"<{array['dtype'][0]}8")
    np.testing.assert_array_equal(data.reshape(array["shape"]), np.eye(2))
    assert (view["kind"], view["ticks"]) == ("heatmap", {"x": ["a", "b"]})


def test_a_table_comes_as_strict_json(port: int) -> None:
    assert _result(port, name="table")["tables"] == {"": {"score": "NaN"}}


def test_results_are_found_by_name_and_step(port: int) -> None:
    base = f"/api/runs/{_run(port)['key']}/results"
    found = _json(port, f"{base}?name=activations&step=10")["results"]
    assert [result["step"] for result in found] == [10]
    assert ask(port, f"{base}?step=1;drop").status == 400


def test_files_come_by_their_hash_in_a_sandbox(port: int) -> None:
    key = _run(port)["key"]
    blobs = _result(port, name="activations", step=10)["blobs"]
    for blob in blobs:
        answer = ask(port, f"/api/runs/{key}/files/{blob['digest']}")
        assert answer.body == {"png": PNG, "pdf": PDF}[blob["suffix"]]
        policy = answer.headers["content-security-policy"]
        assert policy == "sandbox; default-src 'none'"


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/api/runs/../../etc/passwd/metrics",
        "/api/runs/r1/metrics",
        "/api/runs/KEY/files/../run.json",
        "/api/runs/KEY/files/..%2f..%2frun.json",
        "/api/runs/KEY/files/%2e%2e%2frun.json",
        "/api/runs/KEY/files/" + "0" * 64,
        "/api/runs/KEY/results/../0",
        "/api/runs/KEY/results/..%2f..%2fx/0",
        "/api/runs/KEY/results/x/-1",
        "/api/runs/KEY/results/x/99999999999999999999999",
        "/static/../../../etc/passwd",
    ],
)
def test_no_address_names_a_path(port: int, path: str) -> None:
    answer: Answer = ask(port, path.replace("KEY", _run(port)["key"]))
    assert answer.status == 404
    assert b"root:" not in answer.body


def test_a_root_without_runs_has_none(tmp_path: Path) -> None:
    number = free_port()
    with serving(create_app(Library([tmp_path / "missing"])), number):
        assert _json(number, "/api/runs")["runs"] == []


def test_the_pages_are_what_the_package_ships_and_are_kept(port: int) -> None:
    shipped = importlib.resources.files("theseus_track.dashboard") / "static"
    for target, name in (("/", "index.html"), ("/app.js", "app.js")):
        answer = ask(port, target)
        assert answer.body == (shipped / name).read_bytes()
        known = [("If-None-Match", answer.headers["etag"])]
        assert ask(port, target, known).status == 304


def test_a_file_that_was_altered_is_not_sent(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        evaluate(ledger, 1)
    (figure,) = tmp_path.rglob("*.png")
    figure.write_bytes(b"other")
    number = free_port()
    with serving(create_app(Library([tmp_path])), number):
        answer = ask(number, f"/api/runs/{_run(number)['key']}/files/{figure.stem}")
    assert answer.status == 422
    assert "damaged" in json.loads(answer.body)["error"]


def test_arrays_that_are_too_large_are_not_read(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("theseus_track.dashboard.values.MAX_BYTES", 8)
    base = f"/api/runs/{_run(port)['key']}/results"
    known = _json(port, f"{base}?name=activations&step=10")["results"][0]
    assert ask(port, f"{base}/{known['writer']}/{known['seq']}").status == 413
