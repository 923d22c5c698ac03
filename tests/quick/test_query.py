"""Query: which steps fit, in which order, and what is said when none does."""

from pathlib import Path

import pytest

from theseus_track.errors import BadInput, NotFound
from theseus_track.quick import Query, init
from theseus_track.run import open_run


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs; b began later and is written first at step 10."""
    path = tmp_path_factory.mktemp("root")
    a = open_run(path, project="p", name="a", id="a1", tags=["t"], config={"lr": 0.1})
    b = open_run(path, project="q", name="b", id="b1", group="g", config={"lr": 0.2})
    with a, b:
        for step, loss in ((0, 3.0), (10, 2.0), (30, 1.0)):
            a.log_metrics({"loss": loss}, step=step, wall_time=100.0 + step)
        b.log_metrics({"loss": float("nan")}, step=10, wall_time=500.0)
        b.log_metrics({"accuracy": 0.5}, step=20, wall_time=400.0)
        a.log_result("facts", {"n": 1}, step=20, wall_time=120.0)
    return path


def found(query: Query) -> list[tuple[str, int]]:
    return [(node.run.name, node.step) for node in query.all()]


def test_every_step_is_a_node_by_step_then_by_age_of_the_run(root: Path) -> None:
    assert found(init(root).find()) == [
        ("a", 0), ("a", 10), ("b", 10), ("a", 20), ("b", 20), ("a", 30),
    ]  # fmt: skip


def test_conditions_add_up_and_a_search_can_be_used_again(root: Path) -> None:
    every = init(root).find()
    of_a = every.spec(project="p", run="a")
    assert found(of_a.step(10)) == [("a", 10)]
    assert found(of_a.artifact()) == [("a", 20)]
    assert found(every.spec(group="g")) == [("b", 10), ("b", 20)]
    assert found(every.tag("t").artifact("facts")) == [("a", 20)]
    assert found(every.artifact("other")) == []
    assert found(every.nonce("b")) == [("b", 10), ("b", 20)]
    assert found(every.has("facts")) == [("a", 20)]
    assert found(every.has("accuracy")) == [("b", 20)]
    assert found(every.name("a").checkpoint()) == []
    assert len(found(every)) == 6


def test_a_metric_counts_from_its_step_on(root: Path) -> None:
    # No loss was logged at step 20; that of step 10 held.
    assert found(init(root).find().where("loss", "<=", 2)) == [
        ("a", 10), ("a", 20), ("a", 30),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "op", "value", "expected"),
    [
        ("step", "<", 10, [("a", 0)]),
        ("step", ">=", 20, [("a", 20), ("b", 20), ("a", 30)]),
        ("config.lr", "==", 0.2, [("b", 10), ("b", 20)]),
        ("name", "!=", "a", [("b", 10), ("b", 20)]),
        ("project", "in", ["q", "r"], [("b", 10), ("b", 20)]),
        ("wall_time", ">", 450, [("b", 10)]),
        ("accuracy", ">", 0.9, []),
        # Neither unknown nor comparable fits.
        ("unknown", "!=", 3, []),
        ("name", "<", 3, []),
        ("config.unknown", "==", 3, []),
    ],
)
def test_values_are_compared(
    root: Path, key: str, op: str, value: object, expected: list[tuple[str, int]]
) -> None:
    assert found(init(root).find().where(key, op, value)) == expected


def test_an_unknown_operator_is_named_with_those_that_exist(root: Path) -> None:
    with pytest.raises(BadInput, match=r"'~'.*'<='"):
        init(root).find().where("step", "~", 3)


def test_latest_is_what_was_written_last(root: Path) -> None:
    assert found(init(root).find().latest()) == [("b", 10)]
    assert found(init(root).find().spec(run="a").latest()) == [("a", 30)]
    assert found(init(root).find().spec(run="c").latest()) == []


def test_sorting_puts_steps_without_the_key_first(root: Path) -> None:
    every = init(root).find()
    assert found(every.spec(run="a").sort("loss")) == [
        ("a", 30), ("a", 10), ("a", 20), ("a", 0),
    ]  # fmt: skip
    assert found(every.spec(run="b").sort("accuracy", ascending=False)) == [
        ("b", 10), ("b", 20),
    ]  # fmt: skip


def test_rows_have_the_keys_that_were_asked_for(root: Path) -> None:
    rows = init(root).find().where("step", "in", (10, 20)).select(["name", "accuracy"])
    assert rows == [
        {"name": "a", "accuracy": None},
        {"name": "b", "accuracy": None},
        {"name": "a", "accuracy": None},
        {"name": "b", "accuracy": 0.5},
    ]
    assert init(root).find().name("a").step(0).select("loss") == [{"loss": 3.0}]


def test_what_did_not_fit_is_said(root: Path) -> None:
    q = init(root)
    with pytest.raises(NotFound, match=r"name 'a'; loss < 0\.5.*'a', 'b'"):
        q.find().name("a").where("loss", "<", 0.5).resume()
