"""Finding runs: by id, by name, by the beginning of either."""

from pathlib import Path

import pytest

from tests.store.ledgers import evaluate, run_info, writer
from theseus_track.errors import NotFound
from theseus_track.store import LedgerWriter, Store


def _add(
    root: Path, run_id: str, name: str, created: float, project: str = "p"
) -> None:
    info = run_info(run_id, name=name, created=created, project=project)
    LedgerWriter.create(root, info).close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a root with four runs, two of one name."""
    _add(tmp_path, "bbb", "train-gpt", 2.0)
    _add(tmp_path, "aaa", "train-gpt", 3.0)
    _add(tmp_path, "ccc", "train-vit", 1.0, project="q")
    _add(tmp_path, "train", "other", 4.0)
    return tmp_path


def test_runs_come_oldest_first(root: Path) -> None:
    assert [run.id for run in Store(root).runs()] == ["ccc", "bbb", "aaa", "train"]
    assert [run.id for run in Store(root).runs(project="q")] == ["ccc"]
    assert [run.id for run in Store(root).runs(name="train-gpt")] == ["bbb", "aaa"]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("bbb", "bbb"),
        ("train-gpt", "aaa"),
        ("train", "train"),
        ("cc", "ccc"),
        ("train-g", "aaa"),
        ("train-v", "ccc"),
        ("oth", "train"),
    ],
)
def test_a_run_is_found(root: Path, name: str, found: str) -> None:
    assert Store(root).run(name).id == found


def test_an_ambiguous_beginning_lists_its_candidates(root: Path) -> None:
    with pytest.raises(NotFound, match=r"'trai'.*train-vit \(id ccc\).*train-gpt"):
        Store(root).run("trai")


@pytest.mark.parametrize("name", ["train-gptt", "", "zzz"])
def test_an_unknown_run_lists_those_that_exist(root: Path, name: str) -> None:
    with pytest.raises(NotFound, match=f"Unknown run '{name}'.*'train-gpt'"):
        Store(root).run(name)


def test_a_root_that_does_not_exist_is_named_and_not_created(tmp_path: Path) -> None:
    store = Store(tmp_path / "typo")
    with pytest.raises(NotFound, match=r"typo.*--root"):
        store.runs()
    assert not store.root.exists()


def test_a_root_without_runs_is_empty(tmp_path: Path) -> None:
    assert Store(tmp_path).runs() == []
    with pytest.raises(NotFound, match="there is none"):
        Store(tmp_path).run("x")
    (tmp_path / "runs").write_text("a file")
    assert Store(tmp_path).runs() == []


def test_what_is_no_run_is_passed_over(root: Path) -> None:
    (root / "runs" / "empty").mkdir()
    (root / "runs" / "note.txt").write_text("mine")
    assert len(Store(root).runs()) == 4


def test_reading_writes_nothing(root: Path) -> None:
    def stamps() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in root.rglob("*")}

    before = stamps()
    for run in Store(root).runs():
        assert run.state == "finished"
        assert run.results() == []
    assert stamps() == before


def test_a_store_sees_what_is_written_later(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with writer(tmp_path) as ledger:
        run = store.run("r1")
        assert run.steps == []
        evaluate(ledger, 1)
        assert run.steps == []
        assert store.run("r1") is run
        assert run.steps == [1]
        with writer(tmp_path, "r2"), writer(tmp_path) as second:
            evaluate(second, 2)
            assert [r.id for r in store.runs()] == ["r1", "r2"]
            assert run.steps == [1, 2]


def test_one_damaged_run_does_not_hide_the_others(root: Path) -> None:
    (root / "runs" / "bbb" / "run.json").write_text('{"project": 1}')
    (root / "runs" / "ccc" / "run.json").unlink()
    runs = {run.id: run for run in Store(root).runs()}
    assert set(runs) == {"aaa", "bbb", "ccc", "train"}
    assert runs["bbb"].project == "unknown"
    assert "run.json" in str(runs["bbb"].damaged[0])
    assert "missing" in str(runs["ccc"].damaged[0])
