"""What the pages ask for: panels, films, curves, exports, what a browser keeps."""

import base64
import csv
import gzip
import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.store.ledgers import (
    PDF,
    PNG,
    metrics,
    new_figure,
    new_values,
    table_part,
    writer,
)
from tests.web.serving import Answer, ask, free_port, serving
from theseus_track.dashboard import Library, create_app
from theseus_track.records import Source, View
from theseus_track.store import NewPart

REPLAY = Source(kind="replay", checkpoint="ckpt/5", checkpoint_time=3.0)
STEPS = range(0, 100, 10)


def _cells(seed: int, step: int) -> np.ndarray:
    chance = np.random.default_rng((seed, step))
    return chance.standard_normal((6, 10), np.float32)


def _heatmap(cells: np.ndarray) -> NewPart:
    labels, ticks = {"x": "Feature"}, {"y": ["a", "b", "c", "d", "e", "f"]}
    view = View(kind="heatmap", arrays={"values": cells}, labels=labels, ticks=ticks)
    return NewPart(part="", kind="figure", blobs={"png": PNG, "pdf": PDF}, view=view)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    root = tmp_path_factory.mktemp("root")
    for seed in (1, 2):
        with writer(root, f"s{seed}") as ledger:
            for step in STEPS:
                cells, known = _cells(seed, step), {"probe": f"p{seed}", "measure": "m"}
                (ref,) = ledger.append(
                    new_values(step, cells, tokens=8 * step, **known)
                )
                drawn = new_figure(step, ref, parts=(_heatmap(cells),))
                ledger.append(drawn, metrics(step, loss=1.0 - step / 100 + seed))
            value = {"mean": np.array([1, 2], np.float32), "big": np.zeros((2, 2, 2))}
            ledger.append(new_values(5, value, name="norms"))
            arrays = {"x": np.array([1.0, 4.0, 9.0]), "y": np.array([seed, 2.0, 3.0])}
            line = View(kind="line", arrays=arrays)
            part = NewPart(part="", kind="figure", blobs={"png": PNG}, view=line)
            ledger.append(new_figure(5, name="line", parts=(part,)))
            table = table_part('{"score": 1}', "=scores")
            ledger.append(new_figure(5, name="table", parts=(table,)))
    with writer(root, "s1") as ledger:
        ledger.append(new_values(0, np.float32(7), name="norms", source=REPLAY))
        failed: dict[str, Any] = {"parts": (), "error": "plot: boom", "phase": "plot"}
        ledger.append(new_figure(9, name="broken", traceback="Traceback: x", **failed))
    number = free_port()
    with serving(create_app(Library([root])), number):
        yield number


def _json(port: int, target: str) -> Any:
    answer = ask(port, target)
    assert answer.status == 200, answer.body
    return json.loads(answer.body)


def _keys(port: int) -> dict[str, str]:
    return {run["id"]: run["key"] for run in _json(port, "/api/runs")["runs"]}


def _array(value: Any) -> np.ndarray:
    data = base64.b64decode(value["data"])
    return np.frombuffer(data, value["dtype"]).reshape(value["shape"])


def _panels(port: int, words: str) -> Any:
    keys = _keys(port)
    runs = f"run={keys['s2']}&run={keys['s1']}"
    return _json(port, f"/api/views?name=activations&{runs}&{words}")


def test_panels_show_the_nearest_earlier_step_of_each_run(port: int) -> None:
    answer = _panels(port, "step=27")
    keys = _keys(port)
    panels = answer["panels"]
    assert [panel["run"] for panel in panels] == [keys["s2"], keys["s1"]]
    assert [(panel["step"], panel["exact"]) for panel in panels] == [(20, False)] * 2
    for seed, panel in zip((2, 1), panels, strict=True):
        view = panel["views"][""]
        np.testing.assert_array_equal(
            _array(view["arrays"]["values"]), _cells(seed, 20)
        )
        assert view["ticks"]["y"][0] == "a"
    assert answer["mismatches"] == ["probe"]
    assert _panels(port, "step=20")["panels"][0]["exact"]


def test_a_panel_without_data_says_so(port: int) -> None:
    panels = _panels(port, "step=27&exact=1")["panels"]
    assert all("step 27" in panel["missing"] for panel in panels)
    keys = _keys(port)
    found = _json(
        port, f"/api/views?name=broken&step=50&run={keys['s1']}&run={keys['s2']}"
    )
    failed, missing = found["panels"]
    assert (failed["step"], failed["error"]) == (9, "plot: boom")
    assert "broken" in missing["missing"]


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        ("tokens=170", [20, 20]),
        # 1 - step / 100 + seed falls below 1.75 at 30 for seed 1, never for seed 2.
        ("metric=loss&below=1.75", [None, 30]),
    ],
)
def test_runs_are_aligned_by_tokens_or_by_a_metric(
    port: int, words: str, steps: list[int | None]
) -> None:
    assert [panel["step"] for panel in _panels(port, words)["panels"]] == steps


def test_values_without_a_view_are_shown_where_they_have_two_axes(port: int) -> None:
    key = _keys(port)["s2"]
    found = _json(port, f"/api/views?name=norms&step=5&run={key}")["panels"][0]
    assert [*found["fallback"]] == ["mean"]
    np.testing.assert_array_equal(
        _array(found["fallback"]["mean"]["arrays"]["y"]), [1, 2]
    )


def test_a_film_has_a_frame_for_each_step(port: int) -> None:
    film = _json(port, f"/api/runs/{_keys(port)['s1']}/film?name=activations&cells=5")
    assert film["steps"] == [*STEPS]
    assert (film["shape"], film["full"]) == ([5, 5], [6, 10])
    every = np.stack([_cells(1, step) for step in STEPS])
    assert (film["low"], film["high"]) == (every.min(), every.max())
    frames = _array(film["frames"])
    # Blocks of rows begin at 0, 1.2, 2.4 .. rounded down; columns come in pairs.
    rows = np.stack([every[:, i : i + 1] for i in (0, 1, 2, 3)], axis=1)[:, :, 0]
    rows = np.concatenate([rows, every[:, 4:6].mean(axis=1, keepdims=True)], axis=1)
    expected = rows.reshape(len(STEPS), 5, 5, 2).mean(axis=-1)
    np.testing.assert_allclose(frames, expected, rtol=1e-5, atol=1e-6)
    assert film["ticks"]["y"][0] == "a"


def test_a_film_says_which_steps_it_left_out(port: int) -> None:
    film = _json(port, f"/api/runs/{_keys(port)['s1']}/film?name=norms&part=mean")
    assert film["steps"] == [5]
    assert [skipped["step"] for skipped in film["skipped"]] == [0]


def test_a_film_of_lines_says_where_their_points_are(port: int) -> None:
    film = _json(port, f"/api/runs/{_keys(port)['s2']}/film?name=line")
    assert film["x"] == [1, 4, 9]
    np.testing.assert_array_equal(_array(film["frames"]), [[[2, 2, 3]]])


def test_curves_of_several_runs_keep_their_peaks(port: int) -> None:
    keys = _keys(port)
    runs = f"run={keys['s1']}&run={keys['s2']}"
    found = _json(port, f"/api/metrics?{runs}&name=loss")["runs"]
    assert found[keys["s1"]]["loss"]["step"] == [*STEPS]
    assert found[keys["s2"]]["loss"]["value"][0] == 3.0
    few = _json(port, f"/api/metrics?{runs}&points=4")["runs"][keys["s1"]]["loss"]
    assert (few["step"], few["total"]) == ([0, 90], 10)


def test_steps_of_each_analysis_come_with_their_tokens(port: int) -> None:
    found = _json(port, f"/api/runs/{_keys(port)['s1']}/steps")["analyses"]
    assert found["activations"]["steps"] == [*STEPS]
    assert found["activations"]["tokens"][2] == 160
    assert found["broken"]["errors"] == [9]


def _result(port: int, run: str, name: str, step: int) -> Any:
    base = f"/api/runs/{_keys(port)[run]}/results"
    known = _json(port, f"{base}?name={name}&step={step}")["results"][0]
    return f"{base}/{known['writer']}/{known['seq']}"


def test_a_result_tells_where_it_comes_from(port: int) -> None:
    told = _json(port, _result(port, "s1", "norms", 0))
    assert told["provenance"]["source"] == "replay"
    assert told["provenance"]["checkpoint"] == "ckpt/5"
    assert told["provenance"]["bytes"] == 4
    assert [sibling["step"] for sibling in told["siblings"]] == [0]
    failed = _json(port, _result(port, "s1", "broken", 9))
    assert (failed["error"], failed["phase"]) == ("plot: boom", "plot")
    assert failed["traceback"] == "Traceback: x"


def test_values_are_saved_as_npz_and_csv(port: int) -> None:
    result = _result(port, "s1", "norms", 5)
    answer = ask(port, f"{result}/values.npz")
    assert 'filename="norms-step5.npz"' in answer.headers["content-disposition"]
    with np.load(io.BytesIO(answer.body), allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["mean"], np.array([1, 2], np.float32))
        assert arrays["big"].shape == (2, 2, 2)
    text = ask(port, f"{result}/values.csv").body.decode()
    rows = [*csv.reader(io.StringIO(text))]
    assert rows[0] == ["leaf", "index0", "index1", "index2", "value"]
    assert ["mean", "1", "", "", "2.0"] in rows
    assert len(rows) == 1 + 2 + 8


def test_all_steps_come_as_one_zip(port: int) -> None:
    base = f"/api/runs/{_keys(port)['s1']}/steps.zip"
    answer = ask(port, f"{base}?name=activations")
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        assert archive.testzip() is None
        assert archive.read("activations-step30.png") == PNG
        assert archive.read("activations-step30.pdf") == PDF
        with np.load(io.BytesIO(archive.read("activations-step30.npz"))) as arrays:
            np.testing.assert_array_equal(arrays["value"], _cells(1, 30))
        assert json.loads(archive.read("steps.json")) == [*STEPS]
    assert ask(port, f"{base}?name=unknown").status == 404


def test_a_figure_is_saved_under_a_safe_name(port: int) -> None:
    told = _json(port, _result(port, "s1", "activations", 10))
    digest = next(blob["digest"] for blob in told["blobs"] if blob["suffix"] == "pdf")
    base = f"/api/runs/{_keys(port)['s1']}/files/{digest}"
    answer = ask(port, f'{base}?save=../a"%0d%0ab.pdf')
    named = answer.headers["content-disposition"]
    assert named == 'attachment; filename=".._a___b.pdf"'
    assert answer.body == PDF


def test_a_browser_asks_whether_what_it_has_still_holds(port: int) -> None:
    target = "/api/runs"
    first = ask(port, target)
    tag = first.headers["etag"]
    assert first.headers["cache-control"] == "private, no-cache"
    again = ask(port, target, [("If-None-Match", f'"other", W/{tag}')])
    assert (again.status, again.body) == (304, b"")
    assert ask(port, target, [("If-None-Match", '"other"')]).status == 200


def test_json_is_packed_for_who_takes_it(port: int) -> None:
    target = f"/api/runs/{_keys(port)['s1']}/results"
    plain = ask(port, target)
    packed = ask(port, target, [("Accept-Encoding", "br, gzip;q=0.8")])
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert "content-encoding" not in plain.headers


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/api/views?name=activations&step=1", 400),
        ("/api/views?name=activations&run=KEY", 400),
        ("/api/views?name=a%00b&run=KEY&step=1", 400),
        ("/api/views?name=..%2f..%2fetc&run=KEY&step=1", 400),
        ("/api/views?name=activations&run=../../etc&step=1", 404),
        ("/api/views?name=activations&run=KEY%00&step=1", 404),
        ("/api/views?name=activations&run=KEY&step=-1", 400),
        ("/api/views?name=activations&run=KEY&step=1e3", 400),
        ("/api/views?name=activations&run=KEY&step=9999999999999999999999", 400),
        ("/api/views?name=activations&run=KEY&metric=loss&below=x", 400),
        ("/api/views?name=activations&step=1" + "&run=x{}" * 65, 400),
        ("/api/metrics?run=KEY&points=1000000000", 400),
        ("/api/metrics?run=KEY&points=3", 400),
        ("/api/runs/KEY/film?name=activations&cells=100000", 400),
        ("/api/runs/KEY/film?name=unknown", 404),
        ("/api/runs/KEY/steps.zip?name=%2e%2e", 404),
        ("/api/runs/KEY/results/x/0/values.npz", 404),
        ("/api/runs/KEY/results/..%2f/0/values.csv", 404),
        ("/api/runs/%00", 404),
    ],
)
def test_what_makes_no_sense_is_refused(port: int, target: str, status: int) -> None:
    target = target.replace("KEY", _keys(port)["s1"])
    for number in range(target.count("{}")):
        target = target.replace("{}", str(number), 1)
    answer: Answer = ask(port, target)
    assert answer.status == status, answer.body
    assert b"root:" not in answer.body


def test_a_spreadsheet_takes_no_more_cells_than_it_can(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("theseus_track.dashboard.exports._MAX_CELLS", 9)
    answer = ask(port, f"{_result(port, 's1', 'norms', 5)}/values.csv")
    assert answer.status == 413
    assert "values.npz" in json.loads(answer.body)["error"]


def test_panels_that_are_too_large_are_named_and_the_others_shown(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("theseus_track.dashboard.panels.MAX_BYTES", 6 * 10 * 4)
    first, second = _panels(port, "step=20")["panels"]
    assert first["views"]
    assert "fewer runs" in second["error"]
    key = _keys(port)["s1"]
    assert ask(port, f"/api/runs/{key}/film?name=activations").status == 413
