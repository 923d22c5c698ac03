"""A ledger that somebody made to harm: the server reads nothing outside and goes on."""

import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.store.ledgers import evaluate, run_info, writer
from tests.web.serving import ask, free_port, serving
from theseus_track.dashboard import Library, create_app
from theseus_track.records import RecordRef, ResultRecord, ValuesRecord, record_to_json
from theseus_track.records.journal import Leaf, Part, StoredView
from theseus_track.records.run import RunInfo
from theseus_track.store import LedgerWriter

OUTSIDE = "the secret of another directory"


def _leaf(**changes: Any) -> Leaf:
    fields: dict[str, Any] = {
        "leaf": "",
        "dtype": "float32",
        "shape": (2, 2),
        "offset": 0,
        "bytes": 16,
        "crc": 0,
    }
    return Leaf(**fields | changes)


LEAVES = {
    "huge": _leaf(shape=(1 << 30, 1 << 30), bytes=1 << 62),
    "long": _leaf(shape=(1 << 28,), bytes=1 << 30),
    "negative": _leaf(shape=(-2, -2)),
    "before": _leaf(offset=-64),
    "pickled": _leaf(dtype="object"),
    "named": _leaf(dtype="os.system"),
    "many_axes": _leaf(shape=(1,) * 5000, bytes=4),
}
BLOBS = {
    "traversal": {"png": "../../../../outside"},
    "absolute": {"json": "/etc/passwd"},
    "suffix": {"../../../outside": "0" * 64},
    "device": {"png": "../../../../../../../../dev/zero"},
    "pipe": {"png": "1" * 64},
}


def _append(journal: Path, *records: ValuesRecord | ResultRecord) -> None:
    with journal.open("ab") as file:
        for record in records:
            body = json.dumps(record_to_json(record)).encode()
            file.write(b"%08x %s\n" % (zlib.crc32(body), body))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("hostile")
    (directory / "outside.png").write_text(OUTSIDE)
    (directory / "outside").write_text(OUTSIDE)
    with writer(directory) as ledger:
        evaluate(ledger, 1)
    (journal,) = (directory / "runs" / "r1").glob("*.jsonl")
    for name, leaf in LEAVES.items():
        known: dict[str, Any] = {"name": name, "step": 1, "wall_time": 0.0}
        values = ValuesRecord(
            key=name, paths=(), computed=0.0, tree=0, leaves=(leaf,), **known
        )
        view = StoredView(kind="heatmap", arrays=(leaf,))
        part = Part(part="", kind="figure", blobs={}, view=view)
        drawn = ResultRecord(key=name, parts=(part,), **known | {"name": f"v.{name}"})
        lost = RecordRef(writer="../../outside", seq=0)
        odd = ResultRecord(key=name, values=lost, **known | {"name": f"r.{name}"})
        _append(journal, values, drawn, odd)
    for name, blobs in BLOBS.items():
        kind = "json" if "json" in blobs else "figure"
        part = Part(part="../x", kind=kind, blobs=blobs)
        _append(
            journal,
            ResultRecord(key=None, name=name, step=1, wall_time=0.0, parts=(part,)),
        )
    pipe = directory / "runs" / "r1" / "blobs" / "11" / f"{'1' * 64}.png"
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    other = directory / "runs" / "pipes"
    other.mkdir()
    os.mkfifo(other / "run.json")
    os.mkfifo(other / "x.jsonl")
    return directory


@pytest.fixture(scope="module")
def port(root: Path) -> Iterator[int]:
    number = free_port()
    with serving(create_app(Library([root])), number):
        yield number


def _key(port: int) -> str:
    runs = json.loads(ask(port, "/api/runs").body)["runs"]
    return next(run["key"] for run in runs if run["id"] == "r1")


NAMES = [*LEAVES, *(f"v.{name}" for name in LEAVES), *(f"r.{name}" for name in LEAVES)]


@pytest.mark.parametrize("name", [*NAMES, *BLOBS])
def test_no_route_reads_what_a_hostile_record_names(port: int, name: str) -> None:
    key = _key(port)
    base = f"/api/runs/{key}"
    listed = ask(port, f"{base}/results?name={name}")
    assert listed.status == 200, listed.body
    (known,) = json.loads(listed.body)["results"]
    one = f"{base}/results/{known['writer']}/{known['seq']}"
    for target in (
        one,
        f"{one}/values.npz",
        f"{one}/values.csv",
        f"{base}/film?name={name}",
        f"{base}/steps.zip?name={name}",
        f"/api/views?name={name}&step=1&run={key}",
    ):
        answer = ask(port, target)
        assert answer.status in (200, 404, 413, 422, 503), answer.body
        assert OUTSIDE.encode() not in answer.body
        assert b"root:" not in answer.body


@pytest.mark.parametrize("blobs", BLOBS.values(), ids=BLOBS)
def test_no_file_is_sent_but_by_its_own_hash(port: int, blobs: dict[str, str]) -> None:
    for digest in blobs.values():
        target = digest.replace("/", "%2f")
        answer = ask(port, f"/api/runs/{_key(port)}/files/{target}")
        assert answer.status in (404, 422)


def test_the_good_results_beside_are_shown(port: int) -> None:
    found = ask(port, f"/api/views?name=activations&step=1&run={_key(port)}")
    (panel,) = json.loads(found.body)["panels"]
    assert (panel["step"], panel["error"]) == (1, None)


def test_a_configuration_that_is_deep_or_odd_is_shown_as_it_is(tmp_path: Path) -> None:
    odd = {"__proto__": {"x": 1}, "</script>": ["\u2028", 1e308, "NaN"]}
    info: RunInfo = run_info("odd", config=odd)
    with LedgerWriter.create(tmp_path, info) as ledger:
        evaluate(ledger, 1)
    number = free_port()
    with serving(create_app(Library([tmp_path])), number):
        answer = ask(number, "/api/runs")
    (run,) = json.loads(answer.body)["runs"]
    assert run["config"] == odd
    assert answer.headers["content-type"] == "application/json"
