import html
import json
import math
import re

import pytest

from theseus_track.records import JsonItem, RecordRef, to_json_value
from theseus_track.sinks.json_parts import numbers
from theseus_track.sinks.tensorboard.text import show_json


def show(value: object, caption: str = "") -> str:
    item = JsonItem(
        ref=RecordRef(writer="w", seq=1),
        name="entropy",
        part="",
        step=7,
        wall_time=0.0,
        value=to_json_value(value),
        caption=caption,
    )
    return show_json(item, run="r1")


def table(markdown: str) -> list[list[str]]:
    """Cells of the table in it, un-escaped; the rule under its head left out."""
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    return [[html.unescape(c.strip()) for c in r.split("|")[1:-1]] for r in rows]


@pytest.mark.parametrize(
    ("value", "cells"),
    [
        ([{"h": 0, "e": 1.5}, {"h": 1}], [["h", "e"], ["0", "1.5"], ["1", ""]]),
        ({"h": [0, 1], "e": ["x", None]}, [["h", "e"], ["0", "x"], ["1", "null"]]),
        ([[1, 2], [3, 4]], [["0", "1"], ["1", "2"], ["3", "4"]]),
        ({"mean": 1, "ok": True}, [["key", "value"], ["mean", "1"], ["ok", "true"]]),
        ({"mean": 1, "rows": [[1], [2]]}, [["0"], ["1"], ["2"]]),
    ],
)
def test_the_rectangular_part_is_a_table(value: object, cells: list[list[str]]) -> None:
    assert table(show(value)) == cells


@pytest.mark.parametrize("value", [[], {}, 3, None, "x", [[1], [2, 3]], [1, {}], [[]]])
def test_other_values_are_shown_as_code_only(value: object) -> None:
    assert show(value) == f"```json\n{json.dumps(value, indent=2)}\n```"


def test_no_character_of_a_text_is_taken_for_markup() -> None:
    text = "x*y*z _a_ `b` | <b> & </pre>\n```\n# h \\ \udc00 é日本"
    markdown = show({"t": text}, caption=text)
    caption, *_, row = markdown.split("\n\n```json")[0].splitlines()
    assert not re.search(r"[*_`<\\]", caption + row)
    shown = html.unescape(caption)
    assert shown == text.replace("\n", "\\u000a").replace("\udc00", "\\udc00")
    fenced = markdown.split("```json\n")[1].removesuffix("\n```")
    assert json.loads(fenced) == {"t": text}


def test_a_large_table_is_cut_and_says_so() -> None:
    markdown = show([dict.fromkeys(map(str, range(30)), 1) for _ in range(150)])
    assert len(table(markdown)) == 101
    assert "100 of 150 rows, 20 of 30 columns" in markdown


def test_a_large_value_is_cut_and_says_where_the_whole_is() -> None:
    markdown = show(["x" * 100] * 2000)
    assert len(markdown) < 70_000
    assert "theseus-track show r1 entropy --step 7" in html.unescape(markdown)


def test_numbers_worth_a_curve() -> None:
    value = {"mean": 1, "deep": {"x": 2.5, "deeper": {"y": 3}}, "rows": [1, 2]}
    assert numbers(to_json_value(value)) == [(("mean",), 1.0), (("deep", "x"), 2.5)]
    assert numbers(7) == [((), 7.0)]
    assert numbers(to_json_value({"ok": True, "text": "1", "none": None})) == []


def test_numbers_that_are_not_finite_have_a_curve_too() -> None:
    value = to_json_value({"a": math.nan, "b": math.inf, "c": -(10**400)})
    found = dict(numbers(value))
    assert math.isnan(found["a",])
    assert found["b",] == math.inf
    assert found["c",] == -math.inf


def test_at_most_twenty_numbers_have_a_curve() -> None:
    assert len(numbers({str(n): n for n in range(100)})) == 20
