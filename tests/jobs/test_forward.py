"""forward_of: what a text may name, and what is refused."""

from pathlib import Path

import jax
import pytest

from theseus_track.errors import BadInput, NotFound
from theseus_track.jobs import forward_of

FILE = """
import flax.linen as nn, jax, jax.numpy as jnp
from tests.jobs.small import Outputs, Small
from theseus_track.analysis import AnalysisBase
from theseus_track.jobs import Recipe

class Mine(Small):
    pass

class Question(AnalysisBase, Small):
    TARGET = nn.Dense

class Broken(Small):
    def batches(self, split):
        raise OSError("no data here\\nand more")

model, x = nn.Dense(3), jnp.ones((1, 2))
recipe = Recipe(model.apply, jax.eval_shape(model.init, jax.random.key(0), x), x)

def made():
    return recipe

def broken():
    raise ZeroDivisionError("divided")
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "forward.py"
    path.write_text(FILE)
    return str(path)


@pytest.mark.parametrize("name", ["Mine", "Question"])
def test_a_trainer_and_an_analysis_with_one_give_its_forward_pass(
    file: str, name: str
) -> None:
    recipe = forward_of(f"{file}:{name}", ["batch_size=3"])
    assert recipe.make_batch()["x"].shape == (3, 3)
    assert set(recipe.variables) == {"params", "batch_stats"}
    out = jax.eval_shape(recipe.eval_step, recipe.variables, recipe.make_batch())
    assert set(out) == {"loss", "largest"}


@pytest.mark.parametrize("tail", [":recipe", ":made", ""])
def test_a_recipe_is_an_object_or_made_by_a_function(file: str, tail: str) -> None:
    assert forward_of(file + tail).variables["params"]["kernel"].shape == (2, 3)


@pytest.mark.parametrize(
    ("tail", "settings", "error", "named"),
    [
        (":Mine", ["batch_sizes=3"], BadInput, "'batch_size'"),
        (":recipe", ["steps=3"], BadInput, "'steps=3'"),
        (":Outputs", [], BadInput, "has no forward pass"),
        (":x", [], BadInput, "not a Recipe"),
        (":Yours", [], NotFound, "'Mine'"),
        (":Broken", [], BadInput, "OSError: no data here"),
        (":broken", [], BadInput, "ZeroDivisionError: divided"),
    ],
)
def test_what_has_no_forward_pass_is_refused_in_one_line(
    file: str, tail: str, settings: list[str], error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named) as caught:
        forward_of(file + tail, settings)
    assert len(str(caught.value).splitlines()) == 1
