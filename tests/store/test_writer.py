"""The writer: what it acknowledges is there, whatever happens next."""

import hashlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.store.ledgers import (
    PDF,
    PNG,
    evaluate,
    metrics,
    new_figure,
    new_values,
    run_info,
    writer,
)
from theseus_track.errors import BadInput, LedgerError
from theseus_track.records import Beat, RecordRef, View
from theseus_track.store import (
    LedgerWriter,
    NewPart,
    NewProbe,
    NewResult,
    Store,
    verify,
)
from theseus_track.store.pack import DTYPES

dtypes = st.sampled_from([*DTYPES])
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, min_side=0, max_side=3))


@given(st.lists(arrays, min_size=1, max_size=4))
def test_arrays_come_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, values: list[np.ndarray]
) -> None:
    root = tmp_path_factory.mktemp("ledger")
    with writer(root) as ledger:
        ledger.append(new_values(0, values))
    result = Store(root).run("r1")["activations"][0]
    back = result.values
    assert isinstance(back, list)
    for before, after in zip(values, back, strict=True):
        assert (after.dtype, after.shape) == (before.dtype, before.shape)
        assert after.tobytes() == before.tobytes()
        assert after.flags.writeable
    offsets = [leaf.offset for leaf in result.values_record.leaves]  # type: ignore[union-attr]
    assert all(offset % 64 == 0 for offset in offsets)


@pytest.mark.parametrize(
    ("array", "stored", "origin"),
    [
        (np.array([1.5], ml_dtypes.bfloat16), "float32", "bfloat16"),
        (np.array([0.5], ml_dtypes.float8_e4m3fn), "float32", "float8_e4m3fn"),
        (np.array([-3], ml_dtypes.int4), "int8", "int4"),
        (np.array([1.5], ">f8"), "float64", None),
        (np.arange(6).reshape(2, 3).T, "int64", None),
    ],
)
def test_other_layouts_are_stored_plainly(
    tmp_path: Path, array: np.ndarray, stored: str, origin: str | None
) -> None:
    with writer(tmp_path) as ledger:
        ledger.append(new_values(0, array))
    result = Store(tmp_path).run("r1")["activations"][0]
    assert result.dtypes == {"": stored}
    assert result.origins.get("") == origin
    np.testing.assert_array_equal(result.values, array.astype(stored))


def test_the_origin_that_the_caller_knows_is_kept(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        ledger.append(
            new_values(0, {"a": np.zeros(1, np.float32)}, origins={"a": "bfloat16"})
        )
    assert Store(tmp_path).run("r1")["activations"][0].origins == {"a": "bfloat16"}


@pytest.mark.parametrize(
    "value",
    [
        np.array([1j]),
        np.array(["x"]),
        np.array([object()]),
        np.array([(1,)], [("a", "i4")]),
        np.array(["2020-01-01"], "datetime64[s]"),
        "text",
    ],
)
def test_what_cannot_be_kept_leaves_no_trace(tmp_path: Path, value: object) -> None:
    with writer(tmp_path) as ledger:
        before = (ledger.run_dir / f"{ledger.stem}.jsonl").read_bytes()
        with pytest.raises(BadInput):
            ledger.append(
                new_values(1), new_values(2, {"good": np.ones(2), "b": value})
            )
        assert (ledger.run_dir / f"{ledger.stem}.jsonl").read_bytes() == before
        assert (ledger.run_dir / f"{ledger.stem}.bin").read_bytes() == b""
        evaluate(ledger, 3)
    assert Store(tmp_path).run("r1").steps == [3]


@pytest.mark.parametrize(
    "row",
    [
        metrics(1, loss=object()),
        metrics(1, loss=1j),
        metrics(float("nan"), loss=1.0),  # type: ignore[arg-type]
    ],
)
def test_a_record_that_could_not_be_read_back_is_refused(
    tmp_path: Path, row: Any
) -> None:
    with writer(tmp_path) as ledger:
        with pytest.raises(BadInput):
            ledger.append(row)
        ledger.append(metrics(2, loss=1.0))
    assert [row.step for row in Store(tmp_path).run("r1").metrics()] == [2]


@pytest.mark.parametrize(
    "changes", [{"name": "a b"}, {"step": -1}, {"wall_time": float("nan")}]
)
def test_bad_entries_fail_where_they_are_made(changes: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        NewResult(**{"key": None, "name": "a", "step": 1, "wall_time": 1.0} | changes)


def test_refs_number_the_lines_of_the_journal(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        first = ledger.append(metrics(1, loss=1.0), metrics(2, loss=1.0))
        second = ledger.append(Beat(time=1.0))
        assert ledger.append() == []
    assert first + second == [RecordRef(writer=ledger.stem, seq=i) for i in (1, 2, 3)]
    lines = (ledger.run_dir / f"{ledger.stem}.jsonl").read_text().splitlines()
    assert [json.loads(line[9:])["seq"] for line in lines] == [0, 1, 2, 3, 4]
    assert [json.loads(line[9:])["type"] for line in lines][-1] == "end"


def test_a_file_of_one_content_is_kept_once(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        assert ledger.put_blob(PNG, "png") == hashlib.sha256(PNG).hexdigest()
        ledger.append(new_figure(1), new_figure(2))
        ledger.append(new_figure(3))
    files = [p for p in (ledger.run_dir / "blobs").rglob("*") if p.is_file()]
    assert sorted(path.suffix for path in files) == [".pdf", ".png"]


def test_a_blob_that_was_cut_short_is_written_again(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        ledger.append(new_figure(1))
        figure = Store(tmp_path).run("r1")["activations"][1].figure
        assert figure is not None
        figure.pdf_path.write_bytes(PDF[:3])
        ledger.append(new_figure(2))
    assert figure.pdf == PDF


@pytest.mark.parametrize("suffix", ["", "PNG", "a/b", "../x", "a.b", "toolongext"])
def test_a_blob_never_leaves_its_directory(tmp_path: Path, suffix: str) -> None:
    with writer(tmp_path) as ledger, pytest.raises(BadInput, match="suffix"):
        ledger.put_blob(b"", suffix)


def test_a_part_is_a_figure_or_json() -> None:
    with pytest.raises(BadInput, match="'html'"):
        NewPart(part="", kind="html", blobs={})


def test_a_probe_is_kept_with_its_arrays(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        batch = {"tokens": np.arange(6, dtype=np.int32).reshape(2, 3)}
        (ref,) = ledger.append(NewProbe(name="val", hash="abc", value=batch))
    records = dict(Store(tmp_path).run("r1").records())
    assert records[ref].name == "val"  # type: ignore[union-attr]
    assert verify(tmp_path) == []


def test_views_of_every_array_are_kept(tmp_path: Path) -> None:
    view = View(
        kind="line",
        arrays={"x": np.arange(3), "y": np.array([1.0, np.nan, 2.0], np.float32)},
        labels={"title": "$t$", "groups": ["a"]},
        ticks={"x": ("p", "q", "r")},
        scale={"vmin": 0.0},
        caption="c",
    )
    part = NewPart(part="p", kind="figure", blobs={"png": PNG, "pdf": PDF}, view=view)
    with writer(tmp_path) as ledger:
        ledger.append(new_figure(1, parts=(part,)))
    back = Store(tmp_path).run("r1")["activations"][1].view
    assert back is not None
    assert (back.kind, back.caption, back.labels) == ("line", "c", view.labels)
    assert back.ticks == {"x": ["p", "q", "r"]}
    np.testing.assert_array_equal(back.arrays["y"], view.arrays["y"])
    assert back.arrays["y"].dtype == np.float32


def test_closing_twice_is_harmless_and_then_nothing_is_taken(tmp_path: Path) -> None:
    ledger = writer(tmp_path)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="closed"):
        ledger.append(metrics(1, loss=1.0))
    with pytest.raises(LedgerError, match="closed"):
        ledger.beat()


def test_threads_share_one_writer(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:

        def work(name: str) -> None:
            for step in range(20):
                evaluate(ledger, step, name)

        threads = [threading.Thread(target=work, args=(f"a{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    run = Store(tmp_path).run("r1")
    assert sorted(run.analyses) == ["a0", "a1", "a2", "a3"]
    assert all(len(run[name]) == 20 for name in run.analyses)
    assert verify(tmp_path) == []


def test_a_relative_root_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with writer(Path("ledger")) as ledger:
        monkeypatch.chdir(tmp_path / "elsewhere")
        evaluate(ledger, 1)
    assert not any((tmp_path / "elsewhere").iterdir())
    figure = Store(tmp_path / "ledger").run("r1")["activations"][1].figure
    assert figure is not None
    assert figure.png == PNG


def test_a_run_that_exists_keeps_its_own_description(tmp_path: Path) -> None:
    writer(tmp_path).close()
    later = LedgerWriter.create(tmp_path, run_info(name="other", project="other"))
    later.close()
    assert later.info.name == "train-gpt"
    assert Store(tmp_path).run("r1").project == "lab"


def test_a_directory_of_another_run_is_refused(tmp_path: Path) -> None:
    ledger = writer(tmp_path)
    ledger.close()
    other = ledger.run_dir.with_name("r2")
    ledger.run_dir.rename(other)
    with pytest.raises(LedgerError, match=r"'r1'.*'r2'"):
        writer(tmp_path, "r2")


@pytest.mark.parametrize("run_id", ["../x", "/abs", "a\\b", "x" * 300, "é" * 80, "NUL"])
def test_any_id_stays_inside_the_root(tmp_path: Path, run_id: str) -> None:
    root = tmp_path / "root"
    with writer(root, run_id) as ledger:
        evaluate(ledger, 1)
    assert {path.name for path in tmp_path.iterdir()} == {"root"}
    assert ledger.run_dir.parent == root / "runs"
    assert Store(root).run(run_id).id == run_id


def test_long_ids_of_one_beginning_are_told_apart(tmp_path: Path) -> None:
    for end in "ab":
        with writer(tmp_path, "x" * 300 + end) as ledger:
            evaluate(ledger, 1)
    assert len(Store(tmp_path).runs()) == 2


@pytest.mark.parametrize("below", ["", "sub/dir"])
def test_a_root_that_is_a_file_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("mine")
    root = tmp_path / "file" / below
    with pytest.raises(LedgerError, match=r"file.*--root"):
        writer(root)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_root_that_cannot_be_created_is_named() -> None:
    with pytest.raises(LedgerError, match=r"/proc/nowhere.*cannot be written"):
        writer(Path("/proc/nowhere"))


def test_a_damaged_description_is_named_and_kept(tmp_path: Path) -> None:
    ledger = writer(tmp_path)
    ledger.close()
    (ledger.run_dir / "run.json").write_text("{")
    with pytest.raises(LedgerError, match=r"run\.json cannot be read"):
        writer(tmp_path)
    assert (ledger.run_dir / "run.json").read_text() == "{"


PROJECT = Path(__file__).parents[2]
DISK_FULL = """
import resource, sys
from pathlib import Path
from tests.store.ledgers import evaluate, writer, metrics, new_values
from theseus_track.errors import LedgerError
import numpy as np

ledger = writer(Path(sys.argv[1]))
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
evaluate(ledger, 1)
full = 0
for room in (0, 1, 10, 63, 150, 151, 400, 700):
    size = (ledger.run_dir / f"{ledger.stem}.jsonl").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, hard))
    for attempt in range(3):
        try:
            ledger.append(metrics(50, a=1.0), metrics(51, long="x" * 150))
        except LedgerError as error:
            full += "cannot be written" in str(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    ledger.append(metrics(100 + room, room=room))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
try:
    ledger.append(new_values(60, np.zeros(10_000)))
except LedgerError:
    full += 1
try:
    ledger.put_blob(b"x" * 2000, "pdf")
except LedgerError:
    full += 1
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
evaluate(ledger, 2)
ledger.close()
print(full)
"""


def test_a_full_disk_costs_only_what_was_not_acknowledged(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DISK_FULL, str(tmp_path)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) >= 20
    run = Store(tmp_path).run("r1")
    assert run.steps == [1, 2]
    for step in (1, 2):
        result = run["activations"][step]
        np.testing.assert_array_equal(result.values, np.full((2, 3), step))
        assert result.figure is not None
        assert result.figure.png == PNG
    rooms = [row.step - 100 for row in run.metrics() if row.step >= 100]
    assert rooms == [0, 1, 10, 63, 150, 151, 400, 700]
    assert verify(tmp_path) == []
    assert not list(tmp_path.rglob("*.tmp"))


FULL_AT_START = """
import resource, sys
from pathlib import Path
from tests.store.ledgers import evaluate, writer
from theseus_track.errors import LedgerError

with writer(Path(sys.argv[1])) as ledger:
    evaluate(ledger, 1)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
for run_id in ("r1", "r2"):
    try:
        writer(Path(sys.argv[1]), run_id)
    except LedgerError as error:
        print(error)
"""


def test_a_disk_that_is_full_at_the_start_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_AT_START, str(tmp_path)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("cannot be written") == 2
    assert [run.id for run in Store(tmp_path).runs()] == ["r1"]
    assert verify(tmp_path) == []
    assert not list(tmp_path.rglob("*.tmp"))
