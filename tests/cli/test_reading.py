"""The reading commands: what they print, for people and for programs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click.testing
import numpy as np
import pytest

from tests.store.ledgers import (
    PDF,
    PNG,
    evaluate,
    metrics,
    new_figure,
    new_values,
    run_info,
    table_part,
    writer,
)
from theseus_track.cli import main
from theseus_track.cli.output import clock, one_line, ranges
from theseus_track.errors import TheseusError
from theseus_track.records import Source
from theseus_track.store import LedgerWriter

PROJECT = Path(__file__).parents[2]
LONG = "blocks_0/" + "deeply_nested/" * 20 + "attn"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a root with a finished run and a running one."""
    with writer(tmp_path) as ledger:
        for step in (100, 200):
            evaluate(ledger, step)
        ledger.append(
            new_figure(100, name="table", parts=(table_part('{"score": "NaN"}'),)),
            new_figure(200, name="table", parts=(), error="plot: [boom]\nline two"),
            new_values(200, name="late", paths=("blocks[0]/attn", LONG, "")),
            metrics(250, loss=1.0),
        )
    return tmp_path


def _run(root: Path, *words: str, code: int = 0) -> click.testing.Result:
    environment = {"THESEUS_ROOT": str(root)}
    done = click.testing.CliRunner().invoke(main, words, env=environment)
    assert done.exit_code == code, done.output
    return done


def _json(root: Path, *words: str) -> Any:
    def refuse(token: str) -> object:
        raise AssertionError(f"{token} is no JSON")

    output = _run(root, *words, "--json").stdout
    return json.loads(output, parse_constant=refuse)


def test_runs_are_listed_for_programs(root: Path) -> None:
    with LedgerWriter.create(root, run_info("r2", name="second", created=2.0)):
        first, second = _json(root, "runs")
    assert first["project"] == "lab"
    assert (first["name"], first["id"], first["state"]) == (
        "train-gpt",
        "r1",
        "finished",
    )
    assert first["steps"] == [100, 200]
    assert first["last_step"] == 250
    assert first["analyses"] == ["activations", "table", "late"]
    assert (second["id"], second["state"], second["steps"]) == ("r2", "running", [])


def test_runs_are_listed_for_people(root: Path) -> None:
    text = _run(root, "runs").stdout
    assert "train-gpt" in text
    assert "finished" in text
    assert "activations table late" in text
    assert _run(root, "runs", "--project", "none").stdout.startswith("No runs in ")
    assert _json(root, "runs", "--project", "none") == []


def test_results_are_listed_for_programs(root: Path) -> None:
    results = _json(root, "results", "train-gpt")
    assert [(r["name"], r["step"]) for r in results] == [
        ("activations", 100),
        ("table", 100),
        ("activations", 200),
        ("table", 200),
        ("late", 200),
    ]
    first = results[0]
    assert first["analysis"] == "my/activations"
    assert first["paths"] == ["blocks_0/attn"]
    assert first["wall_time"] == 200.0
    assert first["source"] == "live"
    assert first["shapes"] == {"": [2, 3]}
    assert first["dtypes"] == {"": "float32"}
    assert [Path(path).read_bytes() for path in first["files"]] == [PNG, PDF]
    assert all(Path(path).is_absolute() for path in first["files"])
    assert first["error"] is None
    assert results[3]["error"].startswith("plot: [boom]")
    assert results[4]["files"] == []


def test_results_for_people_hide_nothing(root: Path) -> None:
    text = _run(root, "results", "r1").stdout
    assert LONG in text
    assert "blocks[0]/attn" in text
    assert "(root)" in text
    assert r"error: plot: [boom]\nline two" in text
    assert "values only" in text
    assert "png pdf" in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_results_are_chosen(root: Path) -> None:
    assert len(_json(root, "results", "r1", "-a", "activations")) == 2
    assert len(_json(root, "results", "r1", "-a", "my/late", "-a", "table")) == 3
    (one,) = _json(root, "results", "r1", "-a", "table", "--step", "100")
    assert one["step"] == 100
    assert _json(root, "results", "r1", "--step", "7") == []


def test_superseded_results_are_listed_on_request(root: Path) -> None:
    with writer(root, resumed_at=150) as ledger:
        evaluate(ledger, 160)
    chosen = ("results", "r1", "-a", "activations")
    assert [r["step"] for r in _json(root, *chosen)] == [100, 160]
    everything = _json(root, *chosen, "--superseded")
    assert [r["superseded"] for r in everything] == [False, False, True]
    assert "(superseded)" in _run(root, *chosen, "--all").stdout


def test_show_prints_the_files(root: Path) -> None:
    header, png, pdf = _run(
        root, "show", "r1", "activations", "--step", "100"
    ).stdout.splitlines()
    assert "step 100" in header
    assert Path(png).read_bytes() == PNG
    assert Path(pdf).read_bytes() == PDF
    assert "step 200" in _run(root, "show", "r1", "my/activations").stdout
    assert _json(root, "show", "r1", "activations")["step"] == 200


def test_show_says_why_there_is_no_file(root: Path) -> None:
    assert r"error: plot: [boom]\nline two" in _run(root, "show", "r1", "table").stdout
    assert "nothing was drawn" in _run(root, "show", "r1", "late").stdout


def test_show_copies_under_readable_names(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "a b" / "c"
    words = ("show", "r1", "activations", "--copy", str(target))
    text = _run(root, *words).stdout
    assert (target / "activations-step200.png").read_bytes() == PNG
    assert str(target / "activations-step200.pdf") in text.splitlines()
    assert _json(root, *words)["files"] == [
        str(target / "activations-step200.png"),
        str(target / "activations-step200.pdf"),
    ]


def test_copying_where_it_cannot_be_is_one_line(root: Path) -> None:
    done = _run(root, "show", "r1", "activations", "--copy", "/proc/nowhere", code=2)
    assert done.stderr.startswith("Error: The files cannot be copied to /proc/nowhere")


def test_copying_a_damaged_file_is_refused(root: Path, tmp_path: Path) -> None:
    Path(_json(root, "show", "r1", "activations")["files"][0]).write_bytes(b"x")
    words = ("show", "r1", "activations", "--copy", str(tmp_path / "c"))
    assert "damaged" in _run(root, *words, code=2).stderr


def test_a_replayed_result_names_its_checkpoint(root: Path) -> None:
    source = Source(kind="replay", checkpoint="ckpt/300")
    with writer(root, purpose="replay") as ledger:
        ledger.append(new_values(300, source=source))
    (result,) = _json(root, "results", "r1", "--step", "300")
    assert (result["source"], result["checkpoint"]) == ("replay", "ckpt/300")


def test_verify_is_silent_about_a_sound_ledger(root: Path) -> None:
    assert _run(root, "verify").stdout == "no damage\n"
    assert _run(root, "verify", "r1").stdout == "no damage\n"
    assert _json(root, "verify") == []


def test_verify_names_each_damage(root: Path) -> None:
    (payload,) = (root / "runs" / "r1").glob("*.bin")
    data = bytearray(payload.read_bytes())
    data[0] ^= 1
    payload.write_bytes(data)
    done = _run(root, "verify", code=1)
    assert f"{payload}, bytes 0 to 24" in done.stdout
    assert "damaged places: 1" in done.stdout
    (damage,) = json.loads(_run(root, "verify", "--json", code=1).stdout)
    assert damage["file"] == str(payload)
    assert set(damage) == {"file", "where", "what"}


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["results", "train-gptt"], "Did you mean 'train-gpt'"),
        (["results", "r1", "-a", "activation"], "Did you mean 'activations'"),
        (["show", "r1", "nothing"], "'activations', 'late', 'table'"),
        (["show", "r1", "activations", "--step", "150"], "Nearest: 100 and 200"),
        (["verify", "nothing"], "Unknown run 'nothing'"),
        (["runs", "--root", "/no/such/root"], "/no/such/root"),
        (["rnus"], "Did you mean 'runs'"),
    ],
)
def test_a_wrong_name_is_one_line_and_exit_code_2(
    root: Path, words: list[str], names: str
) -> None:
    done = _run(root, *words, code=2)
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert names in done.stderr


@pytest.mark.parametrize(
    "words",
    [["results"], ["show", "r1"], ["results", "r1", "--step", "-1"], ["runs", "--x"]],
)
def test_misuse_has_exit_code_2(root: Path, words: list[str]) -> None:
    assert "Error: " in _run(root, *words, code=2).stderr


def test_an_empty_root_is_no_error(tmp_path: Path) -> None:
    assert _run(tmp_path, "runs").stdout == f"No runs in {tmp_path}.\n"
    assert _json(tmp_path, "runs") == []
    assert _run(tmp_path, "verify").stdout == "no damage\n"


def test_names_from_data_cannot_drive_the_terminal(tmp_path: Path) -> None:
    name = "a\x1b[31m[bold]red\nnext\ud800 é"
    with LedgerWriter.create(tmp_path, run_info("r1", name=name)):
        text = _run(tmp_path, "runs").stdout
    assert r"a\x1b[31m[bold]red\nnext\ud800 é" in text
    assert len(text.splitlines()) == 2


def test_the_help_lists_every_command() -> None:
    text = _run(Path(), "--help").stdout
    assert all(name in text for name in ("runs", "results", "show", "verify"))
    assert "theseus-track" in _run(Path(), "--version").stdout


def test_errors_of_ours_are_worded_by_the_group() -> None:
    @click.group(cls=type(main), invoke_without_command=True)
    def failing() -> None:
        raise TheseusError("It failed: \x1b.\nTwice.")

    done = click.testing.CliRunner().invoke(failing, [])
    assert (done.exit_code, done.stderr) == (2, "Error: It failed: \\x1b.\nTwice.\n")


@pytest.mark.parametrize(
    ("steps", "text"),
    [([], ""), ([1], "1"), ([1, 2, 3, 4], "1 2 3 4"), ([*range(9)], "0 .. 8 (9)")],
)
def test_steps_are_printed_in_few_words(steps: list[int], text: str) -> None:
    assert ranges(steps) == text


def test_times_are_printed_in_utc() -> None:
    assert clock(0.0) == "1970-01-01 00:00:00Z"
    assert clock(1e300) == "1e+300 s"


def test_control_characters_are_made_visible() -> None:
    assert one_line("a\tb\r\n\x00é☃") == r"a\tb\r\n\x00é☃"


def _process(
    root: Path, *words: str, **options: Any
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "THESEUS_ROOT": str(root), **options}
    return subprocess.run(
        [sys.executable, "-m", "theseus_track.cli", *words],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_pipe_gets_whole_lines(root: Path) -> None:
    done = _process(root, "results", "r1", COLUMNS="40")
    assert done.returncode == 0
    assert any(
        LONG in line and "values only" in line for line in done.stdout.split("\n")
    )


def test_a_terminal_without_the_characters_gets_escapes(tmp_path: Path) -> None:
    with LedgerWriter.create(tmp_path, run_info("r1", name="☃")):
        done = _process(tmp_path, "runs", PYTHONIOENCODING="latin-1", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert r"\u2603" in done.stdout


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        for step in range(300):
            ledger.append(new_values(step))
    command = f"{sys.executable} -m theseus_track.cli results r1 --json | head -1"
    done = subprocess.run(
        command,
        shell=True,
        cwd=PROJECT,
        env={**os.environ, "THESEUS_ROOT": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[\n"
    assert done.stderr == ""


HEAVY = ["jax", "flax", "optax", "orbax", "matplotlib", "seaborn", "wandb"]


@pytest.mark.parametrize(
    ("words", "also"), [(["--help"], ["numpy", "rich"]), (["runs"], [])]
)
def test_reading_loads_nothing_heavy(
    root: Path, words: list[str], also: list[str]
) -> None:
    code = (
        "import sys, runpy, atexit\n"
        f"heavy = {{*{HEAVY + also!r}}}\n"
        "loaded = lambda: print('loaded', sorted(heavy & set(sys.modules)))\n"
        "atexit.register(loaded)\n"
        f"sys.argv = ['theseus-track', *{words!r}]\n"
        "runpy.run_module('theseus_track.cli', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PROJECT,
        env={**os.environ, "THESEUS_ROOT": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "loaded []"


def test_no_result_is_told(root: Path) -> None:
    words = ("results", "r1", "--step", "99999")
    text = _run(root, *words).stdout.splitlines()
    assert text[1] == "No results at step 99999. Steps: 100 200."
    assert _json(root, *words) == []
    assert (
        _run(root, *words, "-a", "late")
        .stdout.splitlines()[1]
        .startswith("No results of late at step 99999.")
    )


def test_equal_shapes_are_counted(tmp_path: Path) -> None:
    value = {**{f"l{i}": np.float32(i) for i in range(24)}, "m": np.zeros((2, 3))}
    with writer(tmp_path) as ledger:
        ledger.append(new_values(1, value))
    text = _run(tmp_path, "results", "r1").stdout
    assert "24 * scalar 2x3 " in text
    assert len(_json(tmp_path, "results", "r1")[0]["shapes"]) == 25


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_a_full_disk_behind_the_output_is_one_line(root: Path) -> None:
    code = f"{sys.executable} -m theseus_track.cli runs > /dev/full"
    done = subprocess.run(
        code,
        shell=True,
        cwd=PROJECT,
        env={**os.environ, "THESEUS_ROOT": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == "Error: Cannot print: No space left on device.\n"
    assert done.returncode == 1


def test_ctrl_c_is_one_line_and_exit_code_130() -> None:
    @click.group(cls=type(main), invoke_without_command=True)
    def interrupted() -> None:
        error = KeyboardInterrupt()
        error.add_note("Kept: everything.")
        raise error

    done = click.testing.CliRunner().invoke(interrupted, [])
    assert (done.exit_code, done.stderr) == (130, "\nKept: everything.\n")


@pytest.mark.parametrize("option", ["--name", "--project", "--resume"])
def test_an_empty_text_is_refused(root: Path, option: str) -> None:
    done = _run(root, "run", "demo/gpt/pretrain", option, " ", code=2)
    assert f"{option} ' ' is empty" in done.stderr
    assert done.stderr.count("\n") == 1
