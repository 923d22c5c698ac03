"""Names in W&B: whatever a name is, its key is legal, its own, and can be read back."""

import re
from urllib.parse import unquote

import pytest

from theseus_track.sinks.wandb.keys import (
    METRICS,
    RESULTS,
    figure_key,
    fit,
    json_key,
    leaf_key,
    metric_key,
    mirrored_key,
    table_key,
)

ODD = ["a b", "a_b", "a:b", "a.b", "a/b", "a%b", "../x", "/abs", "a\\b", "é", "*", "\0"]


def test_the_usual_names_stay_as_they_are() -> None:
    assert figure_key("activations", "") == "analysis/activations"
    assert figure_key("activations", "blocks_0") == "analysis/activations.blocks_0"
    assert json_key("stats", "") == "analysis/stats/json"
    assert table_key("stats", "a") == "analysis/stats.a/table"
    assert leaf_key("stats", "", ("deep", "mean")) == "analysis/stats/deep.mean"
    assert leaf_key("stats", "", ()) == "analysis/stats/value"
    assert metric_key("train/loss") == "train/loss"


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_written_in_legal_characters_and_read_back(name: str) -> None:
    key = figure_key(name, name)
    assert re.fullmatch(r"analysis/[A-Za-z0-9_.%-]+", key)
    piece, _, part = key.removeprefix("analysis/").partition(".")
    assert (unquote(piece), unquote(part)) == (name, name)
    assert unquote(metric_key(name)) == name


def test_no_two_names_have_one_key() -> None:
    keys = [metric_key(name) for name in ["", "%", *ODD]]
    keys += [figure_key(name, "") for name in ODD]
    keys += [figure_key("a", part) for part in ODD]
    keys += [leaf_key("a", "", path) for path in [("b", "c"), ("b.c",), ("b/c",)]]
    assert len(set(keys)) == len(keys)


def test_a_number_called_as_what_stands_beside_it_has_a_key_of_its_own() -> None:
    for name in ("json", "table"):
        key = leaf_key("stats", "", (name,))
        assert key not in (json_key("stats", ""), table_key("stats", ""))
        assert unquote(key) == f"analysis/stats/{name}"


@pytest.mark.parametrize(
    "name", ["_step", "_timestamp", RESULTS.step, METRICS.step, "analysis/x", "theseus"]
)
def test_a_metric_never_has_a_key_of_wandb_or_of_ours(name: str) -> None:
    assert metric_key(name) != name
    assert unquote(metric_key(name)) == name
    assert mirrored_key(name).startswith("theseus/metrics/")


def test_a_key_that_is_too_long_is_cut_to_one_of_its_own() -> None:
    first, second = figure_key("n" * 300, ""), figure_key("n" * 301, "")
    assert len(fit(first)) == len(fit(second)) == 200
    assert fit(first) != fit(second)
    assert fit(first) == fit(first)
    assert "~" in fit(first)
    assert fit("short") == "short"
