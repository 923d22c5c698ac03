"""A recipe and a directory of checkpoints are looked into as a run of ours is."""

from pathlib import Path

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
import pytest
from click.testing import CliRunner
from flax.serialization import msgpack_serialize

from theseus_track.analysis import AnalysisBase
from theseus_track.capture import Inputs
from theseus_track.cli import main
from theseus_track.errors import BadInput, NotFound
from theseus_track.jobs import Recipe, load_recipe
from theseus_track.quick import debugger, isolate, preview
from theseus_track.run import open_run
from theseus_track.store import Run, Store

RECIPE = """
import jax
import numpy as np
from flax import linen as nn

from theseus_track.jobs import Recipe

model = nn.Sequential([nn.Dense(1, use_bias=False)])
kernel = jax.ShapeDtypeStruct((1, 1), np.float32)
variables = {"params": {"layers_0": {"kernel": kernel}}}
recipe = Recipe(model.apply, variables, np.full((1, 1), 2, np.float32))
"""
LAYER = "layers_0"


class Output(AnalysisBase):
    """What the layer returns."""

    TARGET = nn.Dense

    def analyze(self, layer: nn.Dense, inputs: Inputs) -> object:
        """Return it."""
        return inputs.output

    def plot(self, values: np.ndarray) -> float:
        """Return its only number."""
        return values.item()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Checkpoints in which the kernel is the step, and a recipe beside them."""
    directory = tmp_path / "saved"
    directory.mkdir()
    for step in (3, 5):
        tree = {"params": {LAYER: {"kernel": np.full((1, 1), step, np.float32)}}}
        (directory / f"checkpoint_{step}").write_bytes(msgpack_serialize(tree))
    (tmp_path / "recipe.py").write_text(RECIPE)
    return directory


@pytest.fixture
def recipe(saved: Path) -> Recipe:
    return load_recipe(str(saved.parent / "recipe.py"))


@pytest.fixture
def run(saved: Path, tmp_path: Path) -> Run:
    """A run without a job, which names both."""
    recipe = str(tmp_path / "recipe.py")
    with open_run(tmp_path / "root", id="r", checkpoints=saved, recipe=recipe):
        pass
    return Store(tmp_path / "root").run("r")


def test_a_call_is_isolated(saved: Path, recipe: Recipe, run: Run) -> None:
    for step, expected in ((None, 10.0), (3, 6.0)):
        of_run = isolate(run, LAYER, step=step)
        of_directory = isolate(recipe, LAYER, step=step, checkpoints=saved)
        assert of_run.output.item() == of_directory.output.item() == expected
    with pytest.raises(NotFound, match="step 4; there are: 3, 5"):
        isolate(recipe, LAYER, step=4, checkpoints=saved)
    with pytest.raises(BadInput, match="goes with a recipe"):
        isolate(run, LAYER, checkpoints=saved)


def test_the_debugger_stops_at_a_layer(saved: Path, recipe: Recipe, run: Run) -> None:
    for debugged, kernel in (
        (debugger(run, LAYER), 5.0),
        (debugger(recipe, LAYER, step=3, checkpoints=saved), 3.0),
    ):
        with debugged as (layer, inputs):
            assert len(debugged.calls) == 1
            assert debugged.output.item() == kernel * 2
            assert layer(inputs.inputs * 2).item() == kernel * 4


def test_an_analysis_is_previewed(saved: Path, recipe: Recipe, run: Run) -> None:
    latest, early = preview(Output, run), preview(Output, run, step=3)
    of_directory = preview(Output, recipe, checkpoints=saved, step=3)
    assert (latest.step, early.step, of_directory.step) == (5, 3, 3)
    assert latest.files[""]["json"] == b"10.0"
    assert early.files == of_directory.files == {"": {"json": b"6.0"}}
    tree = {"params": {LAYER: {"kernel": jnp.full((1, 1), 4.0)}}}
    arrays = Recipe(recipe.eval_step, tree, recipe.batch)
    assert preview(Output, arrays).files == {"": {"json": b"8.0"}}
    with pytest.raises(BadInput, match="own batch"):
        preview(Output, recipe, 1)
    with pytest.raises(BadInput, match="goes with a recipe"):
        preview(Output, run, checkpoints=saved)


def test_the_commands_take_it(saved: Path, run: Run, tmp_path: Path) -> None:
    out, recipe = str(tmp_path / "out"), str(tmp_path / "recipe.py")
    root = ("--root", str(tmp_path / "root"))
    spec = "tests.quick.test_recipe:Output"
    for words, name in (
        (("try", spec, str(saved), "--recipe", recipe, "--step", "3"), "output-3.json"),
        (("try", spec, run.id), "output-5.json"),
    ):
        tried = CliRunner().invoke(main, [*words, *root, "--out", out])
        assert tried.exit_code == 0, tried.output
        assert tried.output.strip() == str(tmp_path / "out" / name)
    found = CliRunner().invoke(main, ["find", recipe, "--class", "Dense"])
    assert found.exit_code == 0
    assert LAYER in found.output
