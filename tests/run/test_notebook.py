"""In a notebook's kernel, the user's figures and backend stay theirs."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from theseus_track.store import Store

NOTEBOOK = Path(__file__).with_name("notebook_process.py")
PROJECT = Path(__file__).parents[2]

BEGIN = """
%matplotlib inline
import jax
import matplotlib
import matplotlib.pyplot as plt
from tests.models import Attention, gpt_and_variables, tokens
from theseus_track import open_run
from theseus_track.analysis import AnalysisBase, instrument

class Map(AnalysisBase):
    TARGET = Attention

    def analyze(self, layer, inputs):
        return inputs.x[0]

    def plot(self, values):
        plt.imshow(values)
        plt.title("ours")
        return plt.gcf()

model, variables = gpt_and_variables()
values = instrument(jax.jit(model.apply), [Map])(variables, tokens())[1]
run = open_run("ROOT", id="nb")
"""

DRAW = """
plt.figure(num=7)
plt.title("mine")
backend = matplotlib.get_backend()
run.log(values, step=1, wait=True)
plt.plot([1, 2])
print(plt.get_fignums(), plt.gca().get_title(), len(plt.gca().lines))
print(matplotlib.get_backend() == backend)
"""

END = "print(plt.get_fignums()); print(run.close().complete)"


@pytest.mark.slow  # starts a notebook's kernel, which imports JAX and draws
def test_a_notebook_shows_the_users_figure_and_not_ours(tmp_path: Path) -> None:
    path = os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])
    cells = [BEGIN.replace("ROOT", str(tmp_path / "results")), DRAW, END]
    done = subprocess.run(
        [sys.executable, str(NOTEBOOK), *map(textwrap.dedent, cells)],
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "IPYTHONDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    began, drew, ended = map(json.loads, done.stdout.splitlines())
    assert began == []
    # The user's own figure is displayed at the end of its cell, as always.
    assert drew == [
        ["stdout", "[7] mine 1\nTrue\n"],
        ["display_data", "text/plain image/png"],
    ]
    assert ended == [["stdout", "[]\nTrue\n"]]
    assert Store(tmp_path / "results").run("nb")["map"][1].figure is not None
