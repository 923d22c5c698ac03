"""Arrays read back: none that was altered, and none that makes no sense."""

import dataclasses
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.store.ledgers import evaluate, new_values, writer
from theseus_track.errors import LedgerError, PayloadPending
from theseus_track.records import Leaf
from theseus_track.store import Store
from theseus_track.store.layout import payload_path
from theseus_track.store.payload import PENDING_SECONDS, read_leaf, read_tree


@pytest.fixture
def payload(tmp_path: Path) -> Path:
    """Return the payload file of a run with one value of ones at step 1."""
    with writer(tmp_path) as ledger:
        ledger.append(new_values(1, np.ones((2, 3), np.float32)))
    return payload_path(ledger.run_dir, ledger.stem)


def _leaf(payload: Path) -> Leaf:
    record = Store(payload.parents[2]).run("r1")["activations"][1].values_record
    assert record is not None
    return record.leaves[0]


def _make_old(payload: Path) -> None:
    long_ago = time.time() - PENDING_SECONDS - 60
    os.utime(payload.with_suffix(".jsonl"), (long_ago, long_ago))


def test_a_flipped_bit_is_found(payload: Path) -> None:
    leaf = _leaf(payload)
    data = bytearray(payload.read_bytes())
    data[leaf.offset + 5] ^= 4
    payload.write_bytes(data)
    _make_old(payload)
    with pytest.raises(LedgerError, match="has changed: it is damaged") as caught:
        read_leaf(payload, leaf)
    assert not isinstance(caught.value, PayloadPending)
    assert payload.name in str(caught.value)


@pytest.mark.parametrize("size", [0, 1, 23])
def test_a_short_file_is_damaged_once_it_is_old(payload: Path, size: int) -> None:
    leaf = _leaf(payload)
    payload.write_bytes(payload.read_bytes()[:size])
    with pytest.raises(PayloadPending, match="Read it again"):
        read_leaf(payload, leaf)
    _make_old(payload)
    with pytest.raises(LedgerError, match="cut short: it is damaged"):
        read_leaf(payload, leaf)


def test_a_missing_file_is_damaged_once_it_is_old(payload: Path) -> None:
    leaf = _leaf(payload)
    payload.unlink()
    with pytest.raises(PayloadPending):
        read_leaf(payload, leaf)
    payload.with_suffix(".jsonl").unlink()
    with pytest.raises(LedgerError, match="damaged"):
        read_leaf(payload, leaf)


def test_bytes_that_arrive_late_are_read(payload: Path) -> None:
    leaf = _leaf(payload)
    data = payload.read_bytes()
    payload.write_bytes(data[:4])
    timer = threading.Timer(0.02, payload.write_bytes, [data])
    timer.start()
    try:
        np.testing.assert_array_equal(read_leaf(payload, leaf), np.ones((2, 3)))
    finally:
        timer.join()


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "object"},
        {"dtype": "complex64"},
        {"dtype": "<U4"},
        {"dtype": "float32,float32"},
        {"shape": (2, 4)},
        {"shape": (-2, -3)},
        {"shape": (0, 2**41), "bytes": 0, "crc": 0},
        {"shape": (1,) * 33, "bytes": 4},
        {"offset": -4},
        {"bytes": -24},
        {"shape": (2**50,), "bytes": 2**52},
    ],
)
def test_a_leaf_that_makes_no_sense_is_refused(
    payload: Path, change: dict[str, Any]
) -> None:
    leaf = dataclasses.replace(_leaf(payload), **change)
    with pytest.raises(LedgerError, match=r"dtype|makes no sense"):
        read_leaf(payload, leaf)


def test_a_leaf_far_beyond_the_file_reads_nothing(payload: Path) -> None:
    leaf = dataclasses.replace(_leaf(payload), shape=(2**36,), bytes=2**38)
    with pytest.raises(PayloadPending, match="cut short"):
        read_leaf(payload, leaf)


@pytest.mark.parametrize("tree", [{"x": 1}, 5, {"n": {"not a name": 0}}])
def test_a_malformed_structure_is_damage(payload: Path, tree: Any) -> None:
    with pytest.raises(LedgerError, match="damaged"):
        read_tree(payload, tree, [_leaf(payload)])


def test_one_damaged_value_leaves_the_others_readable(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        for step in range(3):
            evaluate(ledger, step)
    series = Store(tmp_path).run("r1")["activations"]
    record = series[1].values_record
    assert record is not None
    path = payload_path(ledger.run_dir, ledger.stem)
    data = bytearray(path.read_bytes())
    data[record.leaves[0].offset] ^= 1
    path.write_bytes(data)
    with pytest.raises(PayloadPending):
        _ = series[1].values
    for step in (0, 2):
        np.testing.assert_array_equal(series[step].values, np.full((2, 3), step))
