"""The command `checkpoints`: its list, its leaves, its JSON, its refusals."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from theseus_track.cli import main

OLD = Path(__file__).parents[1] / "checkpoints" / "old"


def _run(*words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(main, ["checkpoints", *words])
    assert done.exit_code == code, done.output
    return done


def test_a_row_says_all_about_a_checkpoint() -> None:
    place = OLD / "orbax-0.6.4" / "composite"
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    lines = _run(str(place)).stdout.splitlines()
    assert lines[0].split() == [
        *("STEP", "SAVED", "FORMAT", "ITEMS", "SIZE", "STATE", "GROUP", "PATH")
    ]
    (row,) = lines[1:]
    assert row.startswith("10 ")
    assert row.split()[-6:] == [
        *("ocdbt", "state", f"{size:,}", "complete", "ckpt_", "ckpt_00000010")
    ]


def test_a_time_of_the_file_is_marked(tmp_path: Path) -> None:
    assert "(file time)" in _run(str(OLD / "orbax-0.5.3" / "zarr")).stdout
    assert "(file time)" not in _run(str(OLD / "orbax-0.6.4" / "zarr")).stdout


def test_what_is_unusable_is_listed_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "run" / "7").mkdir(parents=True)
    (tmp_path / "run" / "60").write_text("text")
    printed = _run(str(tmp_path / "run")).stdout
    assert "broken: it is empty" in printed
    assert "Ignored 60: it is a file in no known format." in printed


def test_several_groups_are_a_question() -> None:
    done = _run(str(OLD))
    assert "'orbax-0.6.4/manager/' (2)" in done.stderr
    assert "Choose one of them" in done.stderr
    only = _run(str(OLD), "--group", "orbax-0.6.4/manager/")
    assert only.stderr == ""
    assert [line.split()[0] for line in only.stdout.splitlines()] == [
        "STEP",
        "5",
        "100",
    ]


def test_leaves_are_listed_without_arrays() -> None:
    place = str(OLD / "orbax-0.6.4" / "manager")
    rows = [line.split() for line in _run(place, "--shapes").stdout.splitlines()]
    assert ["params/blocks_0/bias", "bfloat16", "4"] in rows
    assert ["params/blocks_0/kernel", "float32", "8x4"] in rows
    assert ["step", "int64", "scalar"] in rows
    shown = json.loads(_run(place, "--shapes", "--step", "5", "--json").stdout)
    assert Path(shown["path"]).name == "5"
    assert shown["leaves"]["params/blocks_0/kernel"] == {
        "shape": [8, 4],
        "dtype": "float32",
    }


def test_the_json_is_that_of_the_list() -> None:
    shown = json.loads(_run(str(OLD / "orbax-0.6.4" / "manager"), "--json").stdout)
    assert [one["step"] for one in shown["checkpoints"]] == [5, 100]


def test_an_empty_directory_is_said(tmp_path: Path) -> None:
    assert _run(str(tmp_path)).stdout.startswith("No checkpoints in ")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["old/orbax-0.6.5"], "orbax-0.6.4"),
        (["old/orbax-0.6.4/manager", "--shapes", "--step", "6"], "'5'"),
        (["old/orbax-0.6.4/manager", "--shapes", "--group", "x"], "'' (2)"),
        (["old/orbax-0.6.4", "--shapes"], "'manager/' (2)"),
    ],
)
def test_bad_input_is_one_line_and_creates_nothing(
    monkeypatch: pytest.MonkeyPatch, words: list[str], named: str
) -> None:
    monkeypatch.chdir(OLD.parent)
    before = sorted(OLD.rglob("*"))
    done = _run(*words, code=2)
    assert len(done.stderr.splitlines()) == 1
    assert named in done.stderr
    assert sorted(OLD.rglob("*")) == before
