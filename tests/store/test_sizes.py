"""Sizes: what is unexpectedly large is told, once."""

import logging
from pathlib import Path

import numpy as np
import pytest

from tests.store.ledgers import new_figure, new_values, writer
from theseus_track.store import sizes


def test_a_large_record_is_told_once_for_each_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sizes, "RECORD_BYTES", 100)
    large = np.zeros(1_000_000, np.float32)
    with writer(tmp_path) as ledger, caplog.at_level(logging.WARNING):
        ledger.append(new_values(1, large, name="a"), new_values(1, name="small"))
        ledger.append(new_values(2, large, name="a"), new_values(2, large, name="b"))
    assert [record.args[0][:33] for record in caplog.records] == [  # type: ignore[index]
        "The values of 'a' take 4 MB at st",
        "The values of 'b' take 4 MB at st",
    ]
    assert "1,000 such steps take 4,000 MB" in caplog.text
    assert "float16" in caplog.text


def test_a_large_run_is_told_once_for_each_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sizes, "RUN_BYTES", 100)
    with writer(tmp_path) as ledger, caplog.at_level(logging.WARNING):
        ledger.append(new_values(1, np.zeros(20, np.float32)))
        assert caplog.records == []
        ledger.append(new_figure(1))
        ledger.append(new_figure(2))
        assert len(caplog.records) == 1
        assert str(ledger.run_dir) in caplog.text
    with writer(tmp_path) as ledger, caplog.at_level(logging.WARNING):
        ledger.append(new_values(2, np.zeros(1, np.float32)))
    assert len(caplog.records) == 2
