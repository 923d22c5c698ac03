"""A preview shows what an analysis draws, and keeps nothing."""

import base64
import re

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest
from click.testing import CliRunner

from tests.jobs.small import Outputs, Small
from theseus_track.analysis import AnalysisBase
from theseus_track.cli import main
from theseus_track.errors import AnalysisFault, BadInput, NotFound
from theseus_track.quick import preview
from theseus_track.store import Store

X = jnp.ones((1, 3))


class Weights(AnalysisBase):
    """A figure and a table."""

    TARGET = nn.Dense

    def analyze(self, layer, inputs):
        """Return the output."""
        return inputs.output

    def plot(self, values):
        """Return both, the table under a name that HTML and files cannot hold."""
        return {"map": self.heatmap(values), "a <b>/c": {"sum": float(values.sum())}}


class Failing(Weights):
    """Cannot be drawn."""

    def plot(self, values):
        """Fail."""
        raise ZeroDivisionError("on purpose")


def variables():
    return nn.Dense(2).init(jax.random.key(0), X)


def test_a_function_is_previewed(tmp_path):
    shown = preview(Weights, nn.Dense(2).apply, variables(), X)

    found = shown._repr_html_()
    image = re.search(r"base64,([^\"]+)", found)
    assert image is not None
    assert base64.b64decode(image[1]).startswith(b"\x89PNG")
    assert "a &lt;b&gt;/c" in found
    assert float(shown.value.sum()) == float(
        jnp.sum(jnp.asarray(nn.Dense(2).apply(variables(), X)))
    )
    names = {path.name for path in shown.save(tmp_path / "out")}
    assert names == {"weights-map.png", "weights-map.pdf", "weights-a_b_c.json"}


def test_faults_are_raised():
    with pytest.raises(AnalysisFault, match=r"'failing'.*on purpose"):
        preview(Failing, nn.Dense(2).apply, variables(), X)
    with pytest.raises(BadInput, match="step=3"):
        preview(Weights, nn.Dense(2).apply, variables(), X, step=3)


@pytest.mark.slow  # Trains a small model.
def test_a_run_is_previewed_at_a_step_and_stays_as_it_is(tmp_path):
    root = tmp_path / "results"
    Small(steps=6)(root)
    (run,) = Store(root).runs()
    before = sorted(path for path in root.rglob("*") if path.is_file())

    latest, early = preview(Outputs, run), preview(Outputs, run, step=3)
    tried = CliRunner().invoke(
        main,
        [
            *("try", "tests.jobs.small:Outputs", run.id, "--step", "3"),
            *("--root", str(root), "--out", str(tmp_path / "out")),
        ],
    )
    wrong = CliRunner().invoke(
        main, ["try", "tests.jobs.small:Small", run.id, "--root", str(root)]
    )

    assert (latest.step, early.step) == (6, 3)
    assert latest.value.keys() == {"hidden_0", "hidden_1"}
    assert tried.exit_code == 0, tried.output
    assert tried.output.strip() == str(tmp_path / "out" / "outputs-3.json")
    assert wrong.exit_code == 2
    assert "no analysis" in wrong.output
    with pytest.raises(NotFound, match="step 5"):
        preview(Outputs, run, step=5)
    with pytest.raises(BadInput, match="own batch"):
        preview(Outputs, run, X)
    assert sorted(path for path in root.rglob("*") if path.is_file()) == before
