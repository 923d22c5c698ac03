"""Finished, running or stopped: by files and processes, never by a guess."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.store.ledgers import writer
from theseus_track.store import LedgerWriter, Store, state
from theseus_track.store.machine import is_dead, this_machine
from theseus_track.store.run_state import WINDOW_SECONDS

PROJECT = Path(__file__).parents[2]
DIE = """
import os, signal, sys
from pathlib import Path
from tests.store.ledgers import writer
writer(Path(sys.argv[1]), **eval(sys.argv[2]))
os.kill(os.getpid(), signal.SIGKILL)
"""


def _die(root: Path, **options: object) -> None:
    """Let a process open a writer and be killed."""
    command = [sys.executable, "-c", DIE, str(root), repr(options)]
    assert subprocess.run(command, cwd=PROJECT, check=False).returncode == -9


def _make_old(ledger: LedgerWriter) -> None:
    long_ago = time.time() - WINDOW_SECONDS - 60
    os.utime(ledger.run_dir / f"{ledger.stem}.jsonl", (long_ago, long_ago))


def _state(root: Path) -> str:
    return state(Store(root).run("r1"))


def test_a_closed_run_is_finished(tmp_path: Path) -> None:
    writer(tmp_path).close()
    assert _state(tmp_path) == "finished"


def test_an_open_run_is_running_while_its_file_is_young(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        assert _state(tmp_path) == "running"
        _make_old(ledger)
        assert _state(tmp_path) == "stopped"
        ledger.beat()
        assert _state(tmp_path) == "running"
    assert _state(tmp_path) == "finished"


def test_a_killed_writer_of_this_machine_is_stopped_at_once(tmp_path: Path) -> None:
    _die(tmp_path)
    assert _state(tmp_path) == "stopped"


def test_an_attempt_that_resumed_and_closed_finishes_the_run(tmp_path: Path) -> None:
    _die(tmp_path)
    with writer(tmp_path, resumed_at=1):
        assert _state(tmp_path) == "running"
    assert _state(tmp_path) == "finished"


def test_a_killed_replay_leaves_the_run_stopped(tmp_path: Path) -> None:
    writer(tmp_path).close()
    _die(tmp_path, purpose="replay")
    assert _state(tmp_path) == "stopped"


def test_one_open_writer_keeps_a_run_running(tmp_path: Path) -> None:
    with writer(tmp_path):
        writer(tmp_path, purpose="replay").close()
        assert _state(tmp_path) == "running"
        writer(tmp_path).close()
        assert _state(tmp_path) == "running"


def test_a_file_time_in_the_future_counts_as_now(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        ahead = time.time() + 3600
        os.utime(ledger.run_dir / f"{ledger.stem}.jsonl", (ahead, ahead))
        assert _state(tmp_path) == "running"


def test_growth_that_was_watched_needs_no_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writer(tmp_path) as ledger:
        run = Store(tmp_path).run("r1")
        ledger.beat()
        run.refresh()
        _make_old(ledger)
        assert run.state == "running"
        later = time.monotonic() + WINDOW_SECONDS + 1
        monkeypatch.setattr(time, "monotonic", lambda: later)
        os.utime(ledger.run_dir / f"{ledger.stem}.jsonl")
        assert run.state == "stopped"


def test_a_writer_that_is_gone_is_stopped(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        run = Store(tmp_path).run("r1")
        (ledger.run_dir / f"{ledger.stem}.jsonl").unlink()
        assert run.state == "stopped"


def test_a_run_without_a_writer_is_stopped(tmp_path: Path) -> None:
    ledger = writer(tmp_path)
    ledger.close()
    (ledger.run_dir / f"{ledger.stem}.jsonl").unlink()
    assert _state(tmp_path) == "stopped"


def test_a_writer_whose_first_line_is_lost_is_judged_by_its_file(
    tmp_path: Path,
) -> None:
    with writer(tmp_path) as ledger:
        path = ledger.run_dir / f"{ledger.stem}.jsonl"
        ledger.beat()
        data = bytearray(path.read_bytes())
        data[20] ^= 1
        path.write_bytes(data)
        assert _state(tmp_path) == "running"
        _make_old(ledger)
        assert _state(tmp_path) == "stopped"


def test_processes_are_known_dead_only_for_sure() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    # Not waited for: a zombie is dead, too.
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_dead(child.pid)
    child.wait()
    assert is_dead(child.pid)
    assert not is_dead(os.getpid())
    assert not is_dead(1)
    assert not is_dead(0)
    assert not is_dead(-1)
    assert not is_dead(2**70)


def test_this_machine_says_the_same_twice() -> None:
    assert this_machine() == this_machine()


def test_a_run_that_was_cut_short_is_stopped(tmp_path: Path) -> None:
    writer(tmp_path).close(complete=False)
    assert _state(tmp_path) == "stopped"
    with writer(tmp_path, purpose="replay"):
        pass
    assert _state(tmp_path) == "stopped"
    with writer(tmp_path):
        assert _state(tmp_path) == "running"
    assert _state(tmp_path) == "finished"


def test_a_delivery_does_not_count(tmp_path: Path) -> None:
    writer(tmp_path).close()
    with writer(tmp_path, purpose="sync"):
        assert _state(tmp_path) == "finished"
    _die(tmp_path, purpose="sync")
    assert _state(tmp_path) == "finished"
