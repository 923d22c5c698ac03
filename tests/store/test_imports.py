"""Reading the ledger loads no JAX, no plotting library and no tracker."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.ledgers import evaluate, writer

PROJECT = Path(__file__).parents[2]
LOADED = """
import sys
heavy = {"jax", "jaxlib", "flax", "optax", "orbax", "matplotlib", "seaborn", "wandb",
         "tensorboardX", "tensorboard"}
print(sorted(heavy & set(sys.modules)))
"""
READ = """
from theseus_track.store import Store, verify
import sys
result = Store(sys.argv[1]).run("r1")["activations"][1]
result.values, result.figure.png, result.view, result._repr_html_()
assert verify(sys.argv[1]) == []
"""


@pytest.mark.parametrize(
    "code", ["import theseus_track.store", "import theseus_track.records", READ]
)
def test_nothing_heavy_is_loaded(tmp_path: Path, code: str) -> None:
    with writer(tmp_path) as ledger:
        evaluate(ledger, 1)
    done = subprocess.run(
        [sys.executable, "-c", code + LOADED, str(tmp_path)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
