"""`theseus-track rm`: says what, asks, and never deletes what is being written."""

from pathlib import Path

import click.testing
import pytest

from tests.store.ledgers import evaluate, writer
from theseus_track.cli import main
from theseus_track.errors import LedgerError
from theseus_track.store import Store, holdings, remove
from theseus_track.store.claim import Claim


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a root with two runs."""
    for run_id in ("r1", "r2"):
        with writer(tmp_path, run_id) as ledger:
            evaluate(ledger, 1)
    return tmp_path


def rm(
    root: Path, *words: str, answer: str | None = None, code: int = 0
) -> click.testing.Result:
    environment = {"THESEUS_ROOT": str(root)}
    runner = click.testing.CliRunner()
    done = runner.invoke(main, ["rm", *words], env=environment, input=answer)
    assert done.exit_code == code, done.output
    return done


def ids(root: Path) -> list[str]:
    return [run.id for run in Store(root).runs()]


def test_it_says_what_it_deletes_and_asks(root: Path) -> None:
    text = rm(root, "r1", answer="n\n").stdout
    assert "train-gpt (id r1, finished): 1 results, 5 files" in text
    assert str(root / "runs" / "r1") in text
    assert "Nothing was deleted." in text
    assert ids(root) == ["r1", "r2"]
    assert "Deleted." in rm(root, "r1", answer="y\n").stdout
    assert ids(root) == ["r2"]
    assert sorted(path.name for path in root.iterdir()) == ["runs"]


def test_without_an_answer_nothing_is_deleted(root: Path) -> None:
    rm(root, "r1", answer="", code=1)
    assert ids(root) == ["r1", "r2"]


def test_it_need_not_ask(root: Path) -> None:
    assert "Delete it?" not in rm(root, "r1", "--yes").stdout
    assert ids(root) == ["r2"]


def test_a_running_run_is_not_deleted(root: Path) -> None:
    with writer(root, "r1"):
        done = rm(root, "r1", "--yes", code=2)
        assert "is running" in done.stderr
        assert ids(root) == ["r1", "r2"]
        rm(root, "r1", "--yes", "--assume-stopped")
    assert ids(root) == ["r2"]


def test_a_run_that_is_being_delivered_is_not_deleted(root: Path) -> None:
    run = Store(root).run("r1")
    with Claim.take(run.dir, "sync-wandb"), pytest.raises(LedgerError, match="in use"):
        remove(run)
    assert holdings(run).results == 1
    remove(run)
    assert ids(root) == ["r2"]


def test_what_an_interrupted_deletion_left_is_cleared_away(root: Path) -> None:
    (root / ".deleted-1" / "blobs").mkdir(parents=True)
    rm(root, "r1", "--yes")
    assert sorted(path.name for path in root.iterdir()) == ["runs"]


def test_what_cannot_be_deleted_is_told(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "rename", refuse)
    assert "Read-only file system" in rm(root, "r1", "--yes", code=2).stderr
