"""`theseus-track compare`: a table of differences, and a figure of them."""

import json
from pathlib import Path

import click.testing
import numpy as np
import pytest

from tests.store.ledgers import new_figure, new_values, run_info, table_part
from theseus_track.cli import main
from theseus_track.store import LedgerWriter


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("root")
    for seed in (1, 2):
        info = run_info(f"s{seed}", name=f"seed-{seed}")
        with LedgerWriter.create(directory, info) as ledger:
            (ref,) = ledger.append(
                new_values(
                    10 * seed,
                    np.array([[seed, 0], [0, 3]], np.float32),
                    probe=f"p{seed}",
                )
            )
            ledger.append(new_figure(10 * seed, ref))
            value = {"mean": np.float32(seed), "std": np.array([1, seed], np.float32)}
            (ref,) = ledger.append(new_values(10, value, name="norms"))
            table = table_part("{}")
            ledger.append(new_figure(10, ref, name="norms", parts=(table,)))
    return directory


def _run(root: Path, *words: str) -> click.testing.Result:
    return click.testing.CliRunner().invoke(
        main, ["compare", *words, "--root", str(root)]
    )


def test_the_table_says_how_far_runs_are_apart(root: Path) -> None:
    done = _run(root, "seed-1", "s2", "-a", "activations", "--step", "25")
    assert done.exit_code == 0, done.output
    first, second, *differs, head, row = done.output.splitlines()
    assert "seed-1 (id s1)" in first
    assert "step 10" in first
    assert "step 20" in second
    assert "differs: probe: p1, p2" in differs
    assert head.split()[:2] == ["LEAF", "SHAPE"]
    # |1 - 2| in one of four cells: largest 1, root mean square 0.5.
    assert row.split() == ["(value)", "2x2", "1", "0.5", "75", "%", "1.125", "0.125"]


def test_json_has_the_numbers(root: Path) -> None:
    done = _run(root, "s1", "s2", "-a", "my/norms", "--json")
    told = json.loads(done.output)
    assert told["runs"] == ["s1", "s2"]
    assert told["steps"] == [10, 10]
    assert told["leaves"]["mean"]["max_abs"] == 1
    assert told["leaves"]["std"]["equal"] == 0.5


@pytest.mark.slow  # loads matplotlib and the plotting helpers
@pytest.mark.parametrize(
    ("name", "suffix", "begins"),
    [("activations", "pdf", b"%PDF"), ("norms", "png", b"\x89PNG")],
)
def test_the_difference_is_drawn(
    root: Path, tmp_path: Path, name: str, suffix: str, begins: bytes
) -> None:
    out = tmp_path / f"difference.{suffix}"
    done = _run(root, "s1", "s2", "-a", name, "--out", str(out))
    assert done.exit_code == 0, done.output
    assert out.read_bytes().startswith(begins)
    assert str(out) in done.output


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["s1", "-a", "norms"], ["at least two"]),
        (["s1", "s3", "-a", "norms"], ["'s3'"]),
        (["s1", "s2", "-a", "norm"], ["'norm'", "'norms'"]),
        (["s1", "s2", "-a", "activations", "--step", "10", "--exact"], ["10", "s2"]),
        (["s1", "s2", "-a", "norms", "--out", "x.html"], ["x.html", ".png"]),
        (["s1", "s2", "-a", "norms", "--out", "/missing/x.png"], ["/missing/x.png"]),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    root: Path, words: list[str], named: list[str]
) -> None:
    done = _run(root, *words)
    assert done.exit_code == 2
    assert all(name in done.output for name in named), done.output
    assert len(done.output.strip().splitlines()) == 1
