"""Claims: one process at a time, and a dead one holds nothing."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from theseus_track.errors import LedgerError
from theseus_track.store.claim import Claim, claims_of


def test_a_second_claim_is_refused_until_the_first_is_released(tmp_path: Path) -> None:
    with Claim.take(tmp_path, "sync-a"):
        with pytest.raises(LedgerError, match=f"process {os.getpid()} on "):
            Claim.take(tmp_path, "sync-a")
        assert len(claims_of(tmp_path)) == 1
        with Claim.take(tmp_path, "sync-b"):
            assert len(claims_of(tmp_path)) == 2
    assert claims_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
    Claim.take(tmp_path, "sync-a").release()


def test_a_claim_of_a_dead_process_holds_no_longer(tmp_path: Path) -> None:
    code = (
        "import os, pathlib\n"
        "from theseus_track.store.claim import Claim\n"
        f"Claim.take(pathlib.Path({str(tmp_path)!r}), 'sync-a')\n"
        "os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    (left,) = tmp_path.iterdir()
    assert claims_of(tmp_path) == []
    with Claim.take(tmp_path, "sync-a"):
        assert not left.exists()


def test_a_claim_of_elsewhere_holds_while_it_is_touched(tmp_path: Path) -> None:
    elsewhere = tmp_path / "sync-a.3.claim"
    elsewhere.write_text('{"host": "far", "pid": 1, "machine": "other"}')
    with pytest.raises(LedgerError, match="process 1 on far"):
        Claim.take(tmp_path, "sync-a")
    assert [path.name for path in tmp_path.iterdir()] == [elsewhere.name]
    long_ago = time.time() - 301
    os.utime(elsewhere, (long_ago, long_ago))
    with Claim.take(tmp_path, "sync-a"):
        assert not elsewhere.exists()


def test_a_claim_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touched = threading.Event()
    monkeypatch.setattr("theseus_track.store.claim._BEAT", 0.001)
    monkeypatch.setattr("os.utime", lambda _path: touched.set())
    with Claim.take(tmp_path, "sync-a"):
        assert touched.wait(30)


def test_an_unreadable_claim_is_judged_by_its_age(tmp_path: Path) -> None:
    (tmp_path / "sync-a.1.claim").write_bytes(b"")
    with pytest.raises(LedgerError, match="process \\? on \\?"):
        Claim.take(tmp_path, "sync-a")


def test_of_many_at_once_at_most_one_holds(tmp_path: Path) -> None:
    taken: list[Claim] = []

    def take() -> None:
        try:
            taken.append(Claim.take(tmp_path, "sync-a"))
        except LedgerError:
            return

    threads = [threading.Thread(target=take) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) <= 1
    for claim in taken:
        claim.release()


def test_where_nothing_can_be_written_it_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be written"):
        Claim.take(tmp_path / "missing", "sync-a")
