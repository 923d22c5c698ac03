"""A result as people use it: values, figure, table, and how a notebook shows it."""

import base64
from pathlib import Path

import numpy as np
import pytest

from tests.store.ledgers import (
    PDF,
    PNG,
    evaluate,
    new_figure,
    new_values,
    table_part,
    writer,
)
from theseus_track.errors import LedgerError, NotFound
from theseus_track.records import dumps, loads
from theseus_track.store import Result, Run, Series, Store


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a run with a figure at steps 100 and 200 and a table at 100."""
    with writer(tmp_path) as ledger:
        evaluate(ledger, 100)
        table = table_part('{"<b>": "x & y", "score": "NaN"}')
        ledger.append(new_figure(100, name="table", parts=(table,)))
        evaluate(ledger, 200)
    return Store(tmp_path).run("train-gpt")


def test_values_are_what_plot_saw(run: Run) -> None:
    result = run["activations"][100]
    np.testing.assert_array_equal(result.values, np.full((2, 3), 100))
    assert result.shapes == {"": (2, 3)}
    assert result.dtypes == {"": "float32"}


def test_several_paths_come_back_as_a_dict_in_program_order(tmp_path: Path) -> None:
    value = {"blocks_10/attn": np.ones(1), "blocks_2/attn": np.zeros(1)}
    with writer(tmp_path) as ledger:
        ledger.append(new_values(1, value, paths=tuple(value)))
    result = Store(tmp_path).run("r1")["activations"][1]
    assert isinstance(result.values, dict)
    assert [*result.values] == [*value] == [*result.paths]


def test_a_figure_has_its_bytes_and_paths(run: Run) -> None:
    figure = run["activations"][100].figure
    assert figure is not None
    assert (figure.png, figure.pdf) == (PNG, PDF)
    assert figure._repr_png_() == PNG
    assert figure.png_path.read_bytes() == PNG
    assert figure.pdf_path.suffix == ".pdf"
    assert run["activations"][100].files == [figure.png_path, figure.pdf_path]
    assert all(path.is_absolute() for path in run["activations"][100].files)


def test_a_table_is_a_json_value(run: Run) -> None:
    result = run["table"][100]
    assert result.table == {"<b>": "x & y", "score": "NaN"}
    assert result.figure is None
    assert run["activations"][100].table is None


def test_a_damaged_file_is_never_shown(run: Run) -> None:
    figure = run["activations"][100].figure
    assert figure is not None
    figure.png_path.write_bytes(b"altered")
    with pytest.raises(LedgerError, match="content has changed"):
        _ = figure.png
    figure.pdf_path.unlink()
    with pytest.raises(LedgerError, match="cannot be read"):
        _ = figure.pdf


def test_a_table_that_is_no_strict_json_is_damage(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        ledger.append(new_figure(1, parts=(table_part('{"a": NaN}'),)))
    with pytest.raises(LedgerError, match="strict JSON"):
        _ = Store(tmp_path).run("r1")["activations"][1].table


def test_several_parts_are_told_apart(tmp_path: Path) -> None:
    figure = new_figure(1).parts[0]
    parts = (table_part("[1]", "x/y"), figure, table_part("[2]", "z"))
    with writer(tmp_path) as ledger:
        ledger.append(new_figure(1, parts=parts))
    result = Store(tmp_path).run("r1")["activations"][1]
    assert result.tables == {"x/y": [1], "z": [2]}
    assert result.table == [1]
    assert [*result.figures] == [""]
    assert [*result.views] == [""]
    names = [name for name, _ in result.contents()]
    assert names == [
        "activations-step1.x.2fy.json",
        "activations-step1.png",
        "activations-step1.pdf",
        "activations-step1.z.json",
    ]


def test_a_view_of_a_newer_kind_is_left_out(run: Run) -> None:
    result = run["activations"][100]
    assert result.view is not None
    stored = result.parts[0].view
    assert stored is not None
    object.__setattr__(stored, "kind", "hologram")
    assert result.view is None


def test_the_description_is_strict_json(run: Run) -> None:
    value = loads(dumps(run["activations"][100].to_json()))
    assert isinstance(value, dict)
    assert value["analysis"] == "my/activations"
    assert value["paths"] == ["blocks_0/attn"]
    assert value["shapes"] == {"": [2, 3]}
    assert (value["source"], value["error"]) == ("live", None)


def test_a_notebook_shows_the_figure_with_its_true_step(run: Run) -> None:
    text = run["activations"][100]._repr_html_()
    assert base64.b64encode(PNG).decode() in text
    assert "step 100" in text
    assert "blocks_0/attn" in text


def test_a_notebook_never_runs_what_data_says(run: Run) -> None:
    text = run["table"][100]._repr_html_()
    assert "<b>" not in text
    assert "&lt;b&gt;" in text
    assert "x &amp; y" in text


def test_a_notebook_shows_an_error_or_shapes(tmp_path: Path) -> None:
    with writer(tmp_path) as ledger:
        ledger.append(new_figure(1, parts=(), error="<boom>", phase="plot"))
        ledger.append(new_values(2))
    series = Store(tmp_path).run("r1")["activations"]
    assert "&lt;boom&gt;" in series[1]._repr_html_()
    assert "float32" in series[2]._repr_html_()
    assert "boom" in series._repr_html_()


@pytest.mark.parametrize(
    ("table", "cells"),
    [
        ('[{"a": 1}, {"b": [2]}]', ["<th>a</th><th>b</th>", "<td>[2]</td>"]),
        ("[[1, 2], [3]]", ["<td>1</td><td>2</td>", "<td>3</td>"]),
        ('"text"', ["<td>text</td>"]),
        ("[]", ["<td>[]</td>"]),
        (dumps(list(range(1000))), ["…"]),
        (dumps([[i] for i in range(70)]), ["<td>49</td>", "and 20 more rows"]),
    ],
)
def test_every_json_value_is_a_table(
    tmp_path: Path, table: str, cells: list[str]
) -> None:
    with writer(tmp_path) as ledger:
        ledger.append(new_figure(1, parts=(table_part(table),)))
    text = Store(tmp_path).run("r1")["activations"][1]._repr_html_()
    assert all(cell in text for cell in cells)


def test_a_series_is_read_by_step(run: Run) -> None:
    series = run["activations"]
    assert isinstance(series, Series)
    assert series.steps == [100, 200]
    assert len(series) == 2
    assert 100 in series
    assert 150 not in series
    assert series.latest.step == 200
    assert [result.step for result in series] == [100, 200]
    assert all(isinstance(result, Result) for result in series)
    assert repr(series) == "Series('activations', steps=[100, 200])"


@pytest.mark.parametrize(
    ("step", "near"), [(150, "100 and 200"), (1, "100"), (999, "200")]
)
def test_a_step_without_a_result_names_the_nearest(
    run: Run, step: int, near: str
) -> None:
    with pytest.raises(NotFound, match=f"step {step}. Nearest: {near};"):
        run["activations"][step]


def test_a_step_that_is_no_number_is_named(run: Run) -> None:
    with pytest.raises(NotFound, match="'latest'"):
        run["activations"]["latest"]  # type: ignore[index]


def test_an_analysis_is_found_by_its_key(run: Run) -> None:
    assert run["my/activations"].name == "activations"


def test_an_unknown_analysis_names_the_closest(run: Run) -> None:
    with pytest.raises(NotFound, match=r"'activation'.*mean 'activations'.*train-gpt"):
        run["activation"]


def test_a_run_describes_itself(run: Run) -> None:
    assert run.analyses == ["activations", "table"]
    assert run.steps == [100, 200]
    assert (run.name, run.id, run.project) == ("train-gpt", "r1", "lab")
    assert "finished" in repr(run)
    assert "<td>activations</td><td>2</td>" in run._repr_html_()
    value = run.to_json()
    assert value["steps"] == [100, 200]
    assert value["last_step"] == 200
    assert value["damaged"] == 0


def test_results_are_chosen_by_name_and_step(run: Run) -> None:
    assert [r.step for r in run.results("activations")] == [100, 200]
    assert [r.name for r in run.results(step=100)] == ["activations", "table"]
    assert run.results("nothing") == []
