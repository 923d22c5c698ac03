"""Verifying: silent about what was never acknowledged, and about nothing else."""

from pathlib import Path

import pytest

from tests.store.ledgers import evaluate, metrics, new_figure, table_part, writer
from theseus_track.errors import NotFound
from theseus_track.store import Damage, Run, Store, verify


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a closed run with a figure, a table and metrics."""
    with writer(tmp_path) as ledger:
        evaluate(ledger, 1)
        ledger.append(new_figure(2, name="table", parts=(table_part("[1]"),)))
        ledger.append(metrics(3, loss=1.0))
    return Store(tmp_path).run("r1")


def _flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def _only(damages: list[Damage], file: Path) -> Damage:
    assert [damage.file for damage in damages] == [file]
    return damages[0]


def test_a_sound_ledger_has_no_damage(run: Run) -> None:
    assert verify(run) == verify(Store(run.dir.parents[1])) == []
    assert verify(run.dir.parents[1]) == []


@pytest.mark.slow  # verifies the ledger once for each fifth byte of its files
def test_a_flipped_bit_anywhere_that_counts_is_found(run: Run) -> None:
    arrays = [leaf for r in run.results() for leaf in _leaves(run, r.step)]
    for path in sorted(p for p in run.dir.rglob("*") if p.is_file()):
        for position in range(0, path.stat().st_size, 5):
            inside = any(0 <= position - start < size for start, size in arrays)
            if path.name == "run.json" or (path.suffix == ".bin" and not inside):
                continue
            _flip(path, position)
            fresh = Store(run.dir.parents[1]).run("r1")
            assert verify(fresh), (path, position)
            _flip(path, position)
    assert verify(run) == []


def _leaves(run: Run, step: int) -> list[tuple[int, int]]:
    (result,) = run.results(step=step)
    record = result.values_record
    leaves = list(record.leaves) if record else []
    for part in result.parts:
        leaves += part.view.arrays if part.view else ()
    return [(leaf.offset, leaf.bytes) for leaf in leaves]


def test_a_missing_file_is_named(run: Run) -> None:
    png, pdf = run["activations"][1].files
    png.unlink()
    assert "cannot be read" in _only(verify(run), png).what
    pdf.write_bytes(b"")
    assert [damage.file for damage in verify(run)] == [png, pdf]


def test_a_damaged_array_is_named_by_bytes_and_line(run: Run) -> None:
    (payload,) = run.dir.glob("*.bin")
    _flip(payload, 3)
    assert _only(verify(run), payload).where == "bytes 0 to 24, of line 2"


def test_a_damaged_description_is_named(run: Run) -> None:
    (run.dir / "run.json").write_text("{")
    fresh = Store(run.dir.parents[1])
    assert "cannot be read" in _only(verify(fresh), run.dir / "run.json").what


def test_a_line_that_was_taken_out_is_named(run: Run) -> None:
    (journal,) = run.dir.glob("*.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:2] + lines[3:]))
    fresh = Store(run.dir.parents[1])
    assert "missing" in _only(verify(fresh), journal).what
    journal.write_bytes(b"".join([*lines, lines[2]]))
    fresh = Store(run.dir.parents[1])
    damage = _only(verify(fresh), journal)
    assert damage.where.startswith("line 7")
    assert "line 3" in damage.what


def test_what_was_left_unfinished_is_no_damage(run: Run) -> None:
    (journal,) = run.dir.glob("*.jsonl")
    (payload,) = run.dir.glob("*.bin")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + lines[-1][:-5])
    payload.write_bytes(payload.read_bytes() + b"more")
    (run.dir / "blobs" / "00").mkdir(exist_ok=True)
    (run.dir / "blobs" / "00" / ".half.png.tmp").write_bytes(b"x")
    assert verify(run.dir.parents[1]) == []


def test_a_root_that_does_not_exist_is_no_clean_ledger(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        verify(tmp_path / "typo")
