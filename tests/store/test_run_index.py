"""An index says the same as a Run that keeps every record, and reads one when asked."""

import json
import random
import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests.store.ledgers import (
    evaluate,
    metrics,
    new_figure,
    new_values,
    run_info,
    writer,
)
from theseus_track.errors import LedgerError, NotFound
from theseus_track.records import RecordRef, Resumed
from theseus_track.store import LedgerWriter, Result, Run, RunIndex
from theseus_track.store.index_file import IndexFile


def _fill(root: Path) -> None:
    """Write what a run can hold: attempts, replays, faults, host-side results."""
    with writer(root) as ledger:
        for step in range(0, 50, 10):
            evaluate(ledger, step, "activations", "norms")
            numbers = {"loss": 1.0 / (step + 1), "bad": float("nan"), "note": "é"}
            ledger.append(metrics(step, **numbers))
        ledger.append(new_values(50, tokens=5000), new_values(50))
        ledger.append(new_figure(7, key=None, name="host", paths=()))
        ledger.append(new_figure(60, parts=(), error='plot: "x"', phase="plot"))
    with writer(root, resumed_at=30) as ledger:
        ledger.append(metrics(40, loss=9.0), new_values(30, np.float64(3)))
    with writer(root) as ledger:
        ledger.append(Resumed(step=45), metrics(45, loss=8.0))
    with writer(root, purpose="replay") as ledger:
        evaluate(ledger, 20)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    _fill(tmp_path)
    return tmp_path / "runs" / "r1"


def _index(directory: Path, kept: IndexFile | None = None) -> RunIndex:
    index = RunIndex(directory, kept)
    index.look()
    return index


def _told(result: Result) -> dict[str, object]:
    return {"ref": result.ref, **result.to_json()}


def check_same(index: RunIndex, run: Run) -> None:
    """Check that an index and a run that was read whole say the same."""
    found = [_told(index.result(finding)) for finding in index.findings()]
    assert found == [_told(result) for result in run.results(superseded=True)]
    totals = index.totals()
    assert [*totals.counts] == run.analyses
    assert sum(totals.counts.values()) == len(run.results())
    assert (totals.last_step, totals.steps) == (run.last_step, len(run.steps))
    assert (index.state, index.info) == (run.state, run.info)
    assert (index.count, index.damaged) == (len(run.records()), len(run.damaged))
    for name in index.metrics:
        rows = [row for row in run.metrics() if name in row.metrics]
        curve = index.curve(name)
        assert curve.step.tolist() == [row.step for row in rows]
        assert curve.wall_time.tolist() == [row.wall_time for row in rows]
        numbers = [float(str(row.metrics[name])) for row in rows]
        np.testing.assert_array_equal(curve.value, numbers)
        assert str(totals.last[name]) == str(numbers[-1])


def test_it_says_what_a_run_says(directory: Path) -> None:
    check_same(_index(directory), Run(directory))


def test_rows_of_metrics_are_those_of_the_run(directory: Path) -> None:
    rows = _index(directory).rows()
    run = Run(directory).metrics()
    assert [step for step, _, _ in rows] == [row.step for row in run]
    assert rows[-1] == (45, 145.0, {"loss": 8.0})


def test_it_says_the_same_however_it_was_cut(directory: Path, tmp_path: Path) -> None:
    # The property: whatever was flipped or cut, both readers take the same lines.
    chance = random.Random(0)
    copy = tmp_path / "copy" / "r1"
    for _ in range(15):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(directory, copy)
        for journal in copy.glob("*.jsonl"):
            data = bytearray(journal.read_bytes())
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            journal.write_bytes(data[: chance.randrange(len(data) // 2, len(data))])
        index, run = _index(copy), Run(copy)
        assert index.count == len(run.records())
        found = [_told(index.result(finding)) for finding in index.findings()]
        assert found == [_told(result) for result in run.results(superseded=True)]


def test_lines_of_another_program_are_read_too(directory: Path) -> None:
    expected = Run(directory).to_json()
    for journal in directory.glob("*.jsonl"):
        journal.write_bytes(_respaced(journal.read_bytes()))
    index = _index(directory)
    assert Run(directory).to_json() == expected
    check_same(index, Run(directory))


def _respaced(data: bytes) -> bytes:
    lines = []
    for line in data.splitlines():
        value = json.loads(line[9:])
        body = json.dumps(dict(sorted(value.items())), indent=None).encode()
        lines.append(b"%08x %s\n" % (zlib.crc32(body), body))
    return b"".join(lines)


def test_only_what_is_new_is_read(directory: Path) -> None:
    index = _index(directory)
    before = index.count
    assert not index.look()
    with writer(directory.parents[1]) as ledger:
        assert index.look()
        ledger.append(metrics(100, loss=0.5))
        assert index.look()
        assert index.curve("loss").step[-1] == 100
        assert index.state == "running"
    assert index.look()
    assert index.count == before + 3
    check_same(index, Run(directory))


def test_a_glimpse_is_the_end_of_the_newest_journal(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        for step in range(200):
            evaluate(ledger, step)
            ledger.append(metrics(step, loss=float(step)))
    index = RunIndex(tmp_path / "runs" / "r1")
    seen = index.glimpse().totals()
    assert not index.complete
    assert (seen.last_step, seen.last) == (199, {"loss": 199.0})
    assert 0 < seen.counts["activations"] < 200
    assert index.glimpse().state == "finished"
    assert index.ready().glimpse() is index
    assert index.totals().counts == {"activations": 200}


def test_a_line_that_changed_since_is_not_taken(directory: Path) -> None:
    index = _index(directory)
    for journal in directory.glob("*.jsonl"):
        journal.write_bytes(
            journal.read_bytes().replace(b"activations", b"ACTIVATIONS")
        )
    with pytest.raises(LedgerError, match="changed"):
        index.results("activations")


def test_what_is_not_there_is_not_found(directory: Path) -> None:
    index = _index(directory)
    with pytest.raises(NotFound):
        index.at(RecordRef(writer="../../etc/passwd", seq=0))
    assert index.suffix_of("0" * 64) is None
    (figure,) = {path.stem for path in directory.rglob("*.png")}
    assert index.suffix_of(figure) == "png"
    assert index.curve("unknown").value.shape == (0,)


def test_a_run_without_its_description_has_a_stand_in(directory: Path) -> None:
    (directory / "run.json").write_text("{")
    assert _index(directory).info.id == "r1"


def test_a_kept_index_is_taken_up(directory: Path, tmp_path: Path) -> None:
    kept = IndexFile(tmp_path / "kept")
    _index(directory, kept)
    (file,) = (tmp_path / "kept").iterdir()
    written = file.stat().st_mtime_ns
    check_same(_index(directory, kept), Run(directory))
    assert file.stat().st_mtime_ns == written
    # What was added since is read behind it, and a new journal as well.
    _fill(directory.parents[1])
    check_same(_index(directory, kept), Run(directory))
    assert kept.load(directory).keys() == {p.name for p in directory.glob("*.jsonl")}


def test_a_damaged_index_is_passed_over_and_written_anew(
    directory: Path, tmp_path: Path
) -> None:
    kept = IndexFile(tmp_path / "kept")
    _index(directory, kept)
    (file,) = (tmp_path / "kept").iterdir()
    whole = file.read_bytes()
    chance = random.Random(0)
    for damaged in (
        b"",
        whole[:20],
        whole[:-1],
        b"other " + whole,
        *(_flipped(whole, chance.randrange(len(whole))) for _ in range(8)),
    ):
        file.write_bytes(damaged)
        assert kept.load(directory) == {}
        check_same(_index(directory, kept), Run(directory))
        assert file.read_bytes() == whole


def _flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def test_an_index_of_another_journal_is_passed_over(
    directory: Path, tmp_path: Path
) -> None:
    kept = IndexFile(tmp_path / "kept")
    _index(directory, kept)
    shutil.rmtree(directory)
    info = run_info("r1", name="other")
    with LedgerWriter.create(directory.parents[1], info) as ledger:
        evaluate(ledger, 3, "other")
    check_same(_index(directory, kept), Run(directory))
    # The same file, rewritten with as many bytes.
    (journal,) = directory.glob("*.jsonl")
    _index(directory, kept)
    journal.write_bytes(journal.read_bytes().replace(b"other", b"OTHER"))
    index = _index(directory, kept)
    assert index.totals().counts == {}
    assert index.damaged > 0


def test_an_index_that_cannot_be_kept_is_no_error(
    directory: Path, tmp_path: Path
) -> None:
    (tmp_path / "kept").write_text("a file")
    check_same(_index(directory, IndexFile(tmp_path / "kept")), Run(directory))


def test_an_index_is_kept_only_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("THESEUS_INDEX", raising=False)
    assert IndexFile.from_environment() is None
    monkeypatch.setenv("THESEUS_INDEX", str(tmp_path))
    assert IndexFile.from_environment() == IndexFile(tmp_path)
