"""A value of a branch not taken is kept, and not drawn unless the analysis asks."""

import functools
from pathlib import Path
from typing import Any

import flax.linen as nn
import flax.serialization
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from theseus_track import open_run
from theseus_track.analysis import AnalysisBase, Values, instrument
from theseus_track.errors import BadInput
from theseus_track.quick import preview
from theseus_track.replay import backfill, find_target, plan_replay, replot
from theseus_track.store import Run, Store


class Choice(nn.Module):
    """One of two layers, three times."""

    @nn.compact
    def __call__(self, x: Any, chosen: Any) -> Any:
        a, b = nn.Dense(2, name="a"), nn.Dense(2, name="b")
        if self.is_initializing():
            return a(x) + b(x)
        for flag in chosen:
            x = nn.cond(flag, lambda _, x: a(x), lambda _, x: b(x), self, x)
        return x


class Means(AnalysisBase):
    TARGET = nn.Dense

    def select(self, paths: list[str]) -> Any:
        return [path for path in paths if path.startswith("a")][:2]

    def analyze(self, layer: Any, inputs: Any) -> Any:
        return inputs.output.mean()

    def plot(self, values: Any) -> Any:
        return {path: float(value) for path, value in values.items()}


class Asked(Means):
    PLOT_NOT_TAKEN = True

    def plot(self, values: Any, taken: Any = None) -> Any:
        return {path: bool(taken[path]) for path in values}


@functools.cache
def step() -> tuple[Any, Any, Any]:
    model = Choice()
    x = jnp.ones((3, 2))
    variables = model.init(jax.random.key(0), x, jnp.ones(2, bool))
    return instrument(jax.jit(model.apply), [Means, Asked]), variables, x


def values_of(*chosen: bool) -> Values:
    fn, variables, x = step()
    values: Values = fn(variables, x, jnp.asarray(chosen))[1]
    assert not values.faults
    return values


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run of two evaluations: both calls made, then one of the two."""
    with open_run(tmp_path, project="test") as handle:
        handle.log(values_of(True, True), step=1)
        handle.log(values_of(True, False), step=2)
        assert handle.flush(60)
    return Store(tmp_path).run(handle.id)


def test_the_record_says_why_it_was_not_drawn(run: Run) -> None:
    drawn: Any = run["means"][1]
    skipped: Any = run["means"][2]
    assert set(drawn.table) == {"a", "a#1"}
    assert skipped.table is None
    assert skipped.values_record.valid == {"a": True, "a#1": False}
    assert skipped.values["a#1"] == 0
    assert skipped.result_record.phase == "branch"
    assert skipped.result_record.values is not None
    for word in ("means", "'a#1'", "branch", "not taken", "PLOT_NOT_TAKEN"):
        assert word in skipped.error


def test_who_asks_draws_it_and_is_told_what_was_taken(run: Run) -> None:
    tables = [run["asked"][step].table for step in (1, 2)]
    assert tables == [{"a": True, "a#1": True}, {"a": True, "a#1": False}]


def test_replot_decides_as_the_run_does(run: Run) -> None:
    class Now(Asked):
        NAME = "means"

    class Before(Means):
        NAME = "asked"

    root = run.dir.parent.parent
    assert replot(run, [Now], root=root).done == {"means": [1, 2]}
    assert run.refresh()["means"][2].table == {"a": True, "a#1": False}
    again = replot(run, [Before], root=root)
    assert (again.done, again.skipped) == ({"asked": [1]}, 1)
    assert run.refresh()["asked"][2].table == {"a": True, "a#1": False}


RECIPE = """
import jax, numpy as np
from tests.run.test_not_taken import step
from theseus_track.jobs import Recipe

fn, variables, x = step()
chosen = np.array([True, False])
recipe = Recipe(lambda v, x: fn.__wrapped__(v, x, chosen), variables, np.asarray(x))
"""


@pytest.mark.slow  # Reads a checkpoint and compiles its forward pass.
def test_replay_decides_as_the_run_does(tmp_path: Path) -> None:
    (tmp_path / "recipe.py").write_text(RECIPE)
    (tmp_path / "saved").mkdir()
    data = flax.serialization.msgpack_serialize(jax.device_get(step()[1]))
    (tmp_path / "saved" / "checkpoint_7").write_bytes(data)
    for done in ((7,), ()):
        target = find_target(
            tmp_path / "saved",
            [Means, Asked],
            root=tmp_path / "root",
            recipe=str(tmp_path / "recipe.py"),
        )
        outcome = backfill(plan_replay(target))
        # It is as it should be: nothing is to be done again, and nothing failed.
        assert (outcome.done, outcome.exit_code) == (done, 0)
    (run,) = Store(tmp_path / "root").runs()
    assert "'a#1'" in str(run["means"][7].error)
    assert run["asked"][7].table == {"a": True, "a#1": False}


def test_preview_decides_as_the_run_does() -> None:
    _, variables, x = step()
    # Concrete conditions are conditions all the same.
    given = (Choice().apply, variables, x, jnp.asarray([True, False]))
    shown = preview(Means, *given)
    assert not shown.files
    assert "'a#1'" in str(shown.undrawn)
    assert "not taken" in shown._repr_html_()
    asked = preview(Asked, *given)
    assert asked.undrawn is None
    assert b'"a#1": false' in asked.files[""]["json"]


def test_iterations_are_told_one_by_one() -> None:
    class Deep(AnalysisBase):
        TARGET = nn.Dense

        def analyze(self, layer: Any, inputs: Any) -> Any:
            return inputs.output

        def plot(self, values: Any) -> Any:
            return {"shape": list(values.shape)}

    class Odd(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            dense = nn.Dense(2)
            dense(x)

            def body(_: Any, x: Any, number: Any) -> Any:
                odd = number % 2 == 1
                return nn.cond(
                    odd, lambda _, x: dense(x), lambda _, x: x, self, x
                ), None

            return nn.scan(body, variable_broadcast="params", split_rngs={})(
                self, x, jnp.arange(3)
            )[0]

    class Second(Deep):
        def select(self, paths: list[str]) -> Any:
            return paths[-1]

    model, x = Odd(), jnp.ones((1, 2))
    variables = model.init(jax.random.key(0), x)
    shown = preview(Second, model.apply, variables, x)
    assert "2 of 3 iterations" in str(shown.undrawn)
    np.testing.assert_array_equal(shown.value[::2], np.zeros((2, 1, 2)))


def test_a_plot_that_cannot_be_told_is_refused_where_it_is_written() -> None:
    with pytest.raises(BadInput, match=r"Deaf.*PLOT_NOT_TAKEN.*taken\)"):

        class Deaf(Means):
            PLOT_NOT_TAKEN = True
