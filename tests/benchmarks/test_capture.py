"""The benchmark of capture runs, and writes what it measured."""

import csv
from pathlib import Path

import pytest

from tests.benchmarks.capture import BASE, BEGIN, END, flops_ratio, main, put_into
from tests.benchmarks.measure import Cost, spread


@pytest.mark.slow  # compiles and runs every way once
@pytest.mark.timeout(300)
def test_the_command_writes_a_table_and_all_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, file = tmp_path / "page.md", tmp_path / "new" / "capture.csv"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    # What is left out is like what is not, and takes half a minute to compile.
    ways = ["ours: reference", "capture_intermediates + host", "jax.debug.callback"]
    only = [word for way in ways for word in ("--way", way)]
    words = ["--quick", "--kind", "scan", *only]
    main([*words, "--csv", str(file), "--page", str(page)])
    text = page.read_text()
    assert capsys.readouterr().out.strip() in text
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    table = [line.split(" | ") for line in text.splitlines() if line.startswith("|")]
    assert [cells[1] for cells in table[2:]] == ways
    with file.open() as lines:
        rows = {row["variant"]: row for row in csv.DictReader(lines)}
    assert list(rows) == [BASE, *ways]
    assert {float(v) for k, v in rows[BASE].items() if "time" in k} == {1.0}
    assert all(float(row["milliseconds"]) > 0 for row in rows.values())
    # Everything that every module returned is more than four crops.
    returned = [int(rows[way]["returned"]) for way in ways]
    assert returned[1] > 10 * returned[0] > returned[2]


def test_what_runs_in_every_turn_counts_in_every_turn() -> None:
    def of(flops: float) -> Cost:
        return Cost(flops=flops, temporary=1, returned=1)

    # A body of 10 FLOPs that turns 6 times, and 1 that was added to it.
    def ratio(variant: str) -> float:
        return flops_ratio("scan", variant, of(11), of(10), 60)

    assert ratio("ours: reference") == pytest.approx(61 / 60)
    assert ratio("ours: every layer") == pytest.approx(66 / 60)
    assert ratio("jax.debug.callback") == pytest.approx(66 / 60)
    plain = flops_ratio("plain", "ours: every layer", of(66), of(60), 60)
    assert plain == pytest.approx(66 / 60)


def test_ratios_are_those_of_one_round() -> None:
    found = spread([2.0, 6.0, 30.0], [1.0, 2.0, 10.0])
    assert (found.low, found.median, found.high) == (2.5, 3.0, 3.0)
    alone = spread([3.0], [2.0])
    assert (alone.low, alone.median, alone.high) == (1.5, 1.5, 1.5)


def test_a_page_without_marks_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("text")
    with pytest.raises(SystemExit, match="has no marks"):
        put_into(page, "table")
    assert page.read_text() == "text"
