"""`theseus-track sync`: a line for each tracker, and an exit code that tells."""

import json
from pathlib import Path

import click.testing
import pytest

from tests.store.ledgers import evaluate, metrics, run_info, writer
from theseus_track.cli import main
from theseus_track.store import LedgerWriter


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a root with one run, started without a tracker."""
    with writer(tmp_path) as ledger:
        evaluate(ledger, 100)
        ledger.append(metrics(100, loss=1.0))
    return tmp_path


def sync(root: Path, *words: str, code: int = 0) -> click.testing.Result:
    environment = {"THESEUS_ROOT": str(root)}
    done = click.testing.CliRunner().invoke(main, ["sync", *words], env=environment)
    assert done.exit_code == code, done.output
    return done


def test_a_tracker_that_the_run_never_had(root: Path) -> None:
    assert sync(root, "train-gpt", "--to", "memory").stdout == (
        "memory: 2 delivered, 0 pending, 0 failed\n"
    )
    assert sync(root, "r1", "--to", "memory").stdout == (
        "memory: 0 delivered, 0 pending, 0 failed\n"
    )
    again = sync(root, "r1", "--to", "memory", "--again").stdout
    assert again.startswith("memory: 2 delivered")


def test_several_trackers_have_a_line_each(root: Path) -> None:
    logs = root / "logs"
    # The figure of the fixture is no PNG file, which TensorBoard cannot show.
    text = sync(root, "r1", "--to", f"memory,tensorboard:{logs}", code=3).stdout
    first, second = text.splitlines()
    assert first == "memory: 2 delivered, 0 pending, 0 failed"
    assert second.startswith(f"tensorboard:{logs}: 1 delivered, 0 pending, 1 failed")
    assert "no PNG file" in second


def test_for_programs(root: Path) -> None:
    report = json.loads(sync(root, "r1", "--to", "memory", "--json").stdout)
    assert report["run"] == "r1"
    assert report["sinks"][0]["delivered"] == 2


def test_the_trackers_of_the_run_are_the_default(root: Path) -> None:
    with LedgerWriter.create(root, run_info("r2", sinks={"memory": {}})) as ledger:
        ledger.append(metrics(1, loss=1.0))
    assert "1 delivered" in sync(root, "r2").stdout
    assert "without a tracker" in sync(root, "r1", code=2).stderr


@pytest.mark.parametrize(
    ("words", "named"),
    [(["r9"], "Unknown run"), (["r1", "--to", "memori"], "Did you mean 'memory'")],
)
def test_a_wrong_name_is_one_line(root: Path, words: list[str], named: str) -> None:
    done = sync(root, *words, code=2)
    assert named in done.stderr
    assert done.stderr.count("\n") == 1
