"""What pandas, dataclasses and calendars hold becomes strict JSON with its types."""

import dataclasses
import datetime
import sys
import types
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from theseus_track.errors import RenderError
from theseus_track.records import dumps, loads
from theseus_track.render import normalise
from theseus_track.sinks.json_parts import find_table

pandas: Any = pytest.importorskip("pandas")


def returned(value: object) -> Any:
    """Return the JSON value that plot's result becomes, read back strictly."""
    (part,) = normalise(value).values()
    return loads(dumps(part))


@dataclasses.dataclass
class Row:
    name: str
    table: object


def test_a_data_frame_keeps_the_order_and_the_types_of_its_columns() -> None:
    frame = pandas.DataFrame(
        {"z": [1, 2], "a": [0.5, np.nan], "t": ["x", None], "b": [True, False]}
    )
    found = returned(frame)
    assert list(found) == ["z", "a", "t", "b"]
    assert found["z"] == [1, 2]
    assert all(type(number) is int for number in found["z"])
    assert found["a"] == [0.5, "NaN"]
    assert found["t"][0] == "x"
    assert found["b"] == [True, False]
    assert find_table(found)[0] == ["z", "a", "t", "b"]  # type: ignore[index]


def test_a_labelled_index_is_the_first_column() -> None:
    frame = pandas.DataFrame({"norm": [1.0]}, index=pandas.Index(["q"], name="layer"))
    assert returned(frame) == {"layer": ["q"], "norm": [1.0]}
    several = pandas.DataFrame({"n": [1]}, index=[["a"], ["b"]])
    assert list(returned(several)) == ["level_0", "level_1", "n"]


def test_an_empty_data_frame_keeps_its_columns() -> None:
    assert returned(pandas.DataFrame({"a": [], "b": []})) == {"a": [], "b": []}


def test_a_series_is_a_list_or_a_table_with_its_index() -> None:
    assert returned(pandas.Series([1, 2])) == [1, 2]
    series = pandas.Series([1.5], index=["q"], name="norm")
    assert returned(series) == {"index": ["q"], "norm": [1.5]}


def test_missing_values_dates_and_categories() -> None:
    frame = pandas.DataFrame(
        {
            "n": pandas.array([1, None], dtype="Int64"),
            "when": pandas.to_datetime(["2020-01-02", None]),
            "kind": pandas.Categorical(["a", "b"]),
        }
    )
    assert returned(frame) == {
        "n": [1, None], "when": ["2020-01-02T00:00:00", None], "kind": ["a", "b"],
    }  # fmt: skip
    assert returned([datetime.date(2020, 1, 2), np.datetime64("2020-01")]) == [
        "2020-01-02", "2020-01",
    ]  # fmt: skip


def test_data_frames_inside_of_other_values() -> None:
    frame = pandas.DataFrame({"a": [1]})
    expected = {"name": "r", "table": {"a": [1]}}
    assert returned([Row("r", frame)]) == [expected]
    assert returned({"rows": (Row("r", {"a": [1]}),)}) == {"rows": [expected]}


def test_numbers_that_are_not_finite_have_one_encoding_everywhere() -> None:
    bad = np.array([np.nan, np.inf, -np.inf], ml_dtypes.bfloat16)
    found = returned({"np": bad, "py": [float("nan")], "s": pandas.Series([np.inf])})
    assert found == {
        "np": ["NaN", "Infinity", "-Infinity"], "py": ["NaN"], "s": ["Infinity"],
    }  # fmt: skip


def test_two_columns_of_one_name_are_refused_by_it() -> None:
    with pytest.raises(RenderError, match="'a'"):
        normalise(pandas.DataFrame([[1, 2]], columns=["a", "a"]))


def test_figures_among_values_are_still_told_apart() -> None:
    with pytest.raises(RenderError, match="object"):
        normalise({"a": object()})


def test_while_another_thread_imports_pandas_values_are_taken_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As it is in sys.modules at the beginning of its import.
    monkeypatch.setitem(sys.modules, "pandas", types.ModuleType("pandas"))
    assert returned({"n": 1, "rows": [1.5]}) == {"n": 1, "rows": [1.5]}
