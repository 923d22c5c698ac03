"""The command `find`: the tree, its JSON, large models, and how it refuses."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from theseus_track.cli import main

Call = Callable[..., Result]

STACK = """
from tests.capture import twins
from theseus_track.jobs import Recipe

model, variables = twins.transformed("scan")
recipe = Recipe(model.apply, variables, twins.batch())
wrong = Recipe(model.apply, variables, twins.batch()[:, :3])
"""

NNX = """
import jax, jax.numpy as jnp
from flax import nnx
from theseus_track.jobs import Recipe

class Block(nnx.Module):
    def __init__(self, rngs):
        self.attn = nnx.MultiHeadAttention(32, 4096, decode=False, rngs=rngs)
        self.up = nnx.Linear(4096, 4 * 4096, rngs=rngs)
        self.down = nnx.Linear(4 * 4096, 4096, rngs=rngs)

    def __call__(self, x):
        return x + self.down(nnx.gelu(self.up(self.attn(x))))

class Model(nnx.Module):
    def __init__(self, rngs):
        self.blocks = nnx.List([Block(rngs) for _ in range(36)])

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return x

recipe = Recipe(
    eval_step=lambda model, x: model(x),
    variables=nnx.eval_shape(lambda: Model(nnx.Rngs(0))),
    batch=jax.ShapeDtypeStruct((8, 2048, 4096), jnp.bfloat16),
)
"""

# VmHWM is the peak of this program alone; getrusage counts the parent's, too.
MEASURED = """
import re, sys
from theseus_track.cli import main
main(sys.argv[1:], standalone_mode=False)
peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())
print(int(peak[1]) * 1024, file=sys.stderr)
"""


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stack.py").write_text(STACK)
    return lambda *words: CliRunner().invoke(main, ["find", *words])


def test_the_tree_shows_paths_classes_and_parameters(call: Call) -> None:
    done = call("demo/gpt/pretrain", "--set", "layers=1")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("(root)  GPT  ")
    attn = next(line for line in lines if "blocks_0/attn " in line)
    # 3 * 128 * 128 of the query, key and value; 128 * 128 + 128 of the output.
    assert attn.endswith("blocks_0/attn  SelfAttention  65,664 parameters")
    assert not any("float32" in line for line in lines)


def test_shapes_are_shown_under_each_module(call: Call) -> None:
    words = ("--set", "layers=1", "--set", "batch_size=3", "--class", "SelfAttention")
    lines = call("demo/gpt/pretrain", *words, "--shapes").stdout.splitlines()
    assert lines[-1].strip() == "x float32[3, 64, 128] -> float32[3, 64, 128]"


def test_a_stack_shows_both_forms(call: Call) -> None:
    lines = call("stack.py:recipe", "--shapes").stdout.splitlines()
    attn = next(i for i, line in enumerate(lines) if "block/attn  Attn" in line)
    assert "each: blocks[0:3]/block/attn" in lines[attn]
    assert lines[attn + 1].endswith("for each of scan3")


def test_the_json_holds_everything(call: Call) -> None:
    done = call("stack.py:recipe", "--class", "Attn", "--json")
    (row,) = json.loads(done.stdout)
    assert row["path"] == "blocks/block/attn"
    assert row["layers"] == "blocks[0:3]/block/attn"
    assert row["class"] == "tests.capture.twins.Attn"
    assert row["parameters"] == 3 * (4 * 4 + 4)
    (made,) = row["calls"]
    assert made["output"] == [{"leaf": "", "shape": [2, 4], "dtype": "float32"}]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["demo/gpt/pretran"], "'demo/gpt/pretrain'"),
        (["stack.py:recipes"], "recipes"),
        (["stak.py:recipe"], "'stack.py'"),
        (["stack.py:recipe", "--class", "Atn"], "'Attn'"),
        (["stack.py:recipe", "--set", "layers=3"], "no settings"),
        (["stack.py:recipe", "--method", "encode"], "encode"),
        (["demo/gpt/pretrain", "--set", "layer=3"], "'layers'"),
        (["stack.py:wrong"], "cannot be traced: ScopeParamShapeError: "),
    ],
)
def test_bad_input_is_one_line(call: Call, words: list[str], named: str) -> None:
    done = call(*words)
    assert done.exit_code == 2, done.output
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("Error: ")
    assert named in done.stderr


@pytest.mark.slow  # traces a model of 7 billion parameters in a process of its own
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("kind", ["linen", "nnx"])
def test_seven_billion_parameters_need_under_two_gib(tmp_path: Path, kind: str) -> None:
    (tmp_path / "large.py").write_text(NNX)
    sizes = {"layers": 36, "features": 4096, "heads": 32, "context": 2048}
    words = {
        "linen": ["demo/gpt/pretrain", *_settings(sizes)],
        "nnx": ["large.py:recipe"],
    }[kind]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, "find", *words, "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    assert rows[0]["parameters"] > 7e9
    assert len({row["path"] for row in rows if row["path"].endswith("/attn")}) == 36
    assert int(done.stderr.split()[-1]) < 2 << 30


def _settings(values: dict[str, int]) -> list[str]:
    return [word for k, v in values.items() for word in ("--set", f"{k}={v}")]
