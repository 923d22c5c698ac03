"""`theseus-track tensorboard`: the right directory, and flags that show everything."""

import contextlib
import os
import shlex
import socket
import subprocess
import sys
import urllib.error
from pathlib import Path

import click.testing
import pytest

from tests.sinks.tensorboard_server import Board, wait_until
from tests.sinks.test_tensorboard_backfill import fill
from tests.store.ledgers import run_info, writer
from theseus_track.cli import main
from theseus_track.sinks import sync
from theseus_track.store import LedgerWriter

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a root whose run has more figures than TensorBoard shows by default."""
    with writer(tmp_path) as ledger:
        fill(ledger, range(1, 31))
    sync("r1", root=tmp_path, to=["tensorboard"])
    return tmp_path


def command(root: Path, *words: str, code: int = 0) -> click.testing.Result:
    environment = {"THESEUS_ROOT": str(root)}
    arguments = ["tensorboard", *words, "--print"]
    done = click.testing.CliRunner().invoke(main, arguments, env=environment)
    assert done.exit_code == code, done.output
    return done


def words_of(root: Path, *words: str) -> list[str]:
    return shlex.split(command(root, *words).stdout)


def test_the_command_is_printed(root: Path) -> None:
    logdir = str(root / "tensorboard")
    shown = ["tensorboard", "--logdir", logdir, "--samples_per_plugin"]
    assert words_of(root)[:4] == shown
    assert "images=" in words_of(root, "r1", "--port", "7", "--host", "::1")[4]
    assert words_of(root, "--port", "7", "--host", "::1")[5:] == [
        *("--port", "7"),
        *("--host", "::1"),
    ]


def test_the_place_of_the_run_is_shown(root: Path) -> None:
    logs = root / "my logs"
    logs.mkdir()
    info = run_info("r2", name="mine", sinks={"tensorboard": {"logdir": str(logs)}})
    with LedgerWriter.create(root, info):
        pass
    assert words_of(root, "mine")[2] == str(logs)
    done = command(root, code=2)
    assert "several places" in done.stderr
    assert str(logs) in done.stderr


def test_where_nothing_is_shown_it_says_how(tmp_path: Path) -> None:
    with writer(tmp_path):
        pass
    assert "theseus-track sync" in command(tmp_path, "r1", code=2).stderr
    assert "theseus-track sync" in command(tmp_path, code=2).stderr
    # That others are shown in the root does not mean that this one is.
    (tmp_path / "tensorboard").mkdir()
    assert "theseus-track sync" in command(tmp_path, "r1", code=2).stderr


@pytest.mark.slow  # starts a server
def test_the_server_shows_all_figures(root: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = [sys.executable, "-m", "theseus_track.cli", "tensorboard", "r1"]
    process = subprocess.Popen(
        [*program, "--port", str(port), "--host", "127.0.0.1"],
        cwd=PROJECT,
        env={**os.environ, "THESEUS_ROOT": str(root), "TENSORBOARD_NO_UPDATE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    board = Board(f"http://127.0.0.1:{port}")

    def all_shown() -> bool:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            steps = board.steps("train-gpt/theseus", "a")
            return steps == [*range(1, 31)]
        return False

    try:
        wait_until(all_shown, 90.0, "not all figures are shown")
        assert process.poll() is None
    finally:
        os.killpg(process.pid, 9)
        process.wait(10)
