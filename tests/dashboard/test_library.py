"""Runs are listed at once and read meanwhile; what an answer needs is read first."""

import threading
from pathlib import Path

import pytest

from tests.store.ledgers import evaluate, metrics, run_info, writer
from theseus_track.dashboard import Library
from theseus_track.dashboard.values import summary
from theseus_track.errors import NotFound
from theseus_track.store import LedgerWriter
from theseus_track.store.index_file import INDEX_VARIABLE


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("root")
    for number in range(3):
        info = run_info(f"r{number}", created=float(number))
        with LedgerWriter.create(directory, info) as ledger:
            for step in range(40):
                evaluate(ledger, step, "activations", "norms")
                ledger.append(metrics(step, loss=float(step)))
    return directory


def _wait(library: Library) -> None:
    for thread in threading.enumerate():
        if thread.name == "theseus-index":
            thread.join()
    assert library.indexing() == {"done": 3, "total": 3}


def test_a_run_is_listed_before_it_is_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("theseus_track.dashboard.library._SMALL", 0)
    library = Library([root])
    # A request that is being answered keeps the thread from reading on.
    monkeypatch.setattr("theseus_track.dashboard.library._PATIENCE", 60)
    with library.asked():
        rows = [summary(key, run) for key, run in library.runs().items()]
        assert library.indexing()["done"] == 0
        assert [row["id"] for row in rows] == ["r0", "r1", "r2"]
        assert {(row["last_step"], row["indexed"]) for row in rows} == {(39, False)}
        assert all(row["last"] == {"loss": 39.0} for row in rows)
        # What is asked for is read there and then.
        run = library.run(str(rows[0]["key"]))
        assert run.totals().counts == {"activations": 40, "norms": 40}
    _wait(library)
    rows = [summary(key, run) for key, run in library.runs().items()]
    assert {(row["step_count"], row["indexed"]) for row in rows} == {(40, True)}


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first look take the time that it needs on a busy machine."""
    monkeypatch.setattr("theseus_track.dashboard.library._AT_ONCE", 60)


@pytest.mark.usefixtures("patient")
def test_small_runs_are_read_at_once(root: Path) -> None:
    library = Library([root, root / "missing"])
    assert library.indexing() == {"done": 3, "total": 3}
    assert {library.root_of(run) for run in library.runs().values()} == {0}


def test_runs_of_several_roots_are_apart(root: Path, tmp_path: Path) -> None:
    with writer(tmp_path, "r0") as ledger:
        evaluate(ledger, 1)
    library = Library([root, tmp_path])
    runs = library.runs()
    found = sorted((library.root_of(run), run.id) for run in runs.values())
    assert found == [(0, "r0"), (0, "r1"), (0, "r2"), (1, "r0")]
    assert len(runs) == 4
    with pytest.raises(NotFound):
        library.run("r0")


@pytest.mark.usefixtures("patient")
def test_indexes_are_kept_where_the_environment_says(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {*root.rglob("*")}
    monkeypatch.setenv(INDEX_VARIABLE, str(tmp_path / "kept"))
    first = Library([root])
    rows = [summary(key, run) for key, run in first.runs().items()]
    assert len([*(tmp_path / "kept").iterdir()]) == 3
    again = Library([root])
    assert [summary(key, run) for key, run in again.runs().items()] == rows
    # Reading leaves no trace in the ledger.
    assert {*root.rglob("*")} == before


def test_only_the_runs_that_were_asked_for_last_stay_at_hand(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("theseus_track.dashboard.library._RECENT", 1)
    library = Library([root])
    first, second, _ = library.runs()
    found = library.run(first).findings()
    assert library.run(first).findings() is found
    library.run(second)
    assert library.run(first).findings() is not found
    assert library.run(first).findings() == found
