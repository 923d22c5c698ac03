"""The journal reader: what was altered, torn or cut is never taken for a record."""

import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.ledgers import metrics, writer
from theseus_track.records import MetricsRecord, Record, RecordRef, dumps
from theseus_track.store.journal import TORN_MARK, JournalReader, parse_line


def _line(value: object) -> bytes:
    body = dumps(value).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _row(number: int, **more: object) -> bytes:
    value = {"v": 1, "type": "metrics", "step": number, "wall_time": 1, "metrics": {}}
    return _line({**value, **more})


def _records(path: Path) -> list[Record]:
    reader = JournalReader(path)
    reader.poll()
    return [line.record for line in reader.lines]


def _steps(reader: JournalReader) -> list[int]:
    return [
        line.record.step
        for line in reader.lines
        if isinstance(line.record, MetricsRecord)
    ]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Return the journal of a closed run with three rows of metrics."""
    with writer(tmp_path) as ledger:
        for step in range(3):
            ledger.append(metrics(step, loss=1.5 / (step + 1), note="\ud800é"))
    (path,) = ledger.run_dir.glob("*.jsonl")
    return path


def test_every_truncation_keeps_the_lines_before_it(
    journal: Path, tmp_path: Path
) -> None:
    data = journal.read_bytes()
    whole = _records(journal)
    cut = tmp_path / "cut.jsonl"
    for size in range(len(data) + 1):
        cut.write_bytes(data[:size])
        reader = JournalReader(cut)
        reader.poll()
        assert [x.record for x in reader.lines] == whole[: data[:size].count(b"\n")]
        assert reader.damaged == []


@pytest.mark.slow  # reads the journal once for each of its bits
def test_no_flipped_bit_is_taken_for_a_record(journal: Path, tmp_path: Path) -> None:
    data = bytearray(journal.read_bytes())
    whole = _records(journal)
    flipped = tmp_path / "flipped.jsonl"
    for position in range(len(data)):
        for bit in range(8):
            data[position] ^= 1 << bit
            flipped.write_bytes(data)
            data[position] ^= 1 << bit
            reader = JournalReader(flipped)
            reader.poll()
            kept = [line.record for line in reader.lines]
            assert all(record in whole for record in kept)
            assert len(kept) >= len(whole) - 2
            assert reader.damaged, (position, bit)


@given(st.binary(max_size=60))
def test_no_line_of_noise_is_a_record(noise: bytes) -> None:
    assert parse_line(noise) is None


@pytest.mark.parametrize(
    "body", [b"[1]", b"1", b"{", b'{"a": NaN}', b"\xff", b"[" * 100_000]
)
def test_a_line_of_right_checksum_must_be_a_json_object(body: bytes) -> None:
    assert parse_line(b"%08x %s" % (zlib.crc32(body), body)) is None


def test_a_tail_of_zeros_is_passed_over_and_a_later_line_read(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_bytes(_row(1) + b"\0" * 4096)
    reader = JournalReader(path)
    assert reader.poll()
    assert reader.damaged == []
    path.write_bytes(_row(1) + b"\0" * 4096 + _row(2) + b"\0\0\n" + _row(3))
    assert reader.poll()
    assert _steps(reader) == [1, 2, 3]


def test_zeros_that_were_on_their_way_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    second = _row(2)
    path.write_bytes(_row(1) + b"\0" * (len(second) - 1) + b"\n")
    reader = JournalReader(path)
    reader.poll()
    assert _steps(reader) == [1]
    assert len(reader.damaged) == 1
    path.write_bytes(_row(1) + second)
    reader.poll()
    assert _steps(reader) == [1, 2]
    assert reader.damaged == []


def test_each_poll_reads_only_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_bytes(_row(0) + _row(1)[:20])
    reader = JournalReader(path)
    assert reader.poll()
    assert not reader.poll()
    # What lies behind the reader is not looked at again.
    path.write_bytes(b"x" * len(_row(0)) + _row(1) + _row(2))
    assert reader.poll()
    assert _steps(reader) == [0, 1, 2]


@given(st.lists(st.integers(1, 80), max_size=12))
def test_any_way_of_growing_gives_the_same_lines(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[int]
) -> None:
    data = b"".join(_row(step) for step in range(5))
    path = tmp_path_factory.mktemp("grow") / "w.jsonl"
    reader = JournalReader(path)
    position = 0
    for piece in [*pieces, len(data)]:
        with path.open("ab") as file:
            file.write(data[position : position + piece])
        position += piece
        reader.poll()
    assert _steps(reader) == [0, 1, 2, 3, 4]
    assert reader.damaged == []


def test_a_file_that_was_replaced_by_a_shorter_one_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_bytes(_row(1) + _row(2))
    reader = JournalReader(path)
    reader.poll()
    path.write_bytes(_row(7))
    reader.poll()
    assert _steps(reader) == [7]


def test_a_file_that_is_gone_leaves_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_bytes(_row(1))
    reader = JournalReader(path)
    reader.poll()
    path.unlink()
    assert not reader.poll()
    assert _steps(reader) == [1]


def test_a_file_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.mkdir()
    reader = JournalReader(path)
    assert not reader.poll()
    assert "cannot be read" in reader.damaged[0].what


def test_unknown_fields_types_and_newer_versions_are_passed_over(
    tmp_path: Path,
) -> None:
    path = tmp_path / "w.jsonl"
    newer = _row(3, v=99, step={"of": "another kind"})
    path.write_bytes(
        _row(1, invented=[1]) + _line({"v": 9, "type": "invented"}) + newer + _row(2)
    )
    reader = JournalReader(path)
    reader.poll()
    assert _steps(reader) == [1, 2]
    assert reader.damaged == []


def test_a_malformed_record_of_this_version_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_bytes(_row(1) + _row(2, step="two") + _row(3))
    reader = JournalReader(path)
    reader.poll()
    assert _steps(reader) == [1, 3]
    (damage,) = reader.damaged
    assert "line 2" in damage.where
    assert "'two'" in damage.what


def test_damage_is_named_by_line_and_byte(journal: Path) -> None:
    data = bytearray(journal.read_bytes())
    third = [i for i, byte in enumerate(data) if byte == ord("\n")][1] + 1
    data[third + 30] ^= 1
    journal.write_bytes(data)
    reader = JournalReader(journal)
    reader.poll()
    (damage,) = reader.damaged
    assert damage.where == f"line 3, byte {third}"
    assert str(journal) in str(damage)


def test_a_line_that_its_writer_gave_up_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_bytes(_row(1) + _row(2)[:30] + TORN_MARK + _row(3))
    reader = JournalReader(path)
    reader.poll()
    assert _steps(reader) == [1, 3]
    assert reader.damaged == []


def test_lines_are_known_by_the_number_they_carry(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_bytes(_row(1, seq=0) + b"joined" + _row(3, seq=3) + _row(4, seq=4))
    reader = JournalReader(path)
    reader.poll()
    refs = [line.ref for line in reader.lines]
    assert refs == [RecordRef(writer="w", seq=0), RecordRef(writer="w", seq=4)]
    path.write_bytes(_row(1) + _row(2, seq=True))
    reader = JournalReader(path)
    reader.poll()
    assert [line.ref.seq for line in reader.lines] == [0, 1]
