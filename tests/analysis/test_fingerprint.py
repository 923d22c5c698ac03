"""The hashes change with the code that they stand for, and with nothing else."""

import dataclasses
import importlib.util
from pathlib import Path
from typing import Any

from theseus_track.analysis import AnalysisBase, draw_hash, measure_hash

SOURCE = """
import flax.linen as nn
from theseus_track.analysis import AnalysisBase

class Look(AnalysisBase):
    TARGET = nn.Dense

    def analyze(self, layer, inputs):
        return {body}

    def plot(self, values):
        {comment}
        return {drawing}
"""


def _load(path: Path, **parts: str) -> Any:
    fields = {"body": "inputs.output", "comment": "", "drawing": "None", **parts}
    path.write_text(SOURCE.format(**fields))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Look()


def test_comments_and_layout_do_not_matter(tmp_path: Path) -> None:
    one = _load(tmp_path / "one.py")
    two = _load(
        tmp_path / "two.py", comment="# drawn with care", body="(inputs.output)"
    )
    assert measure_hash(one) == measure_hash(two)
    assert draw_hash(one) == draw_hash(two)


def test_another_analyze_changes_measure_alone(tmp_path: Path) -> None:
    one = _load(tmp_path / "one.py")
    two = _load(tmp_path / "two.py", body="inputs.output + 1")
    assert measure_hash(one) != measure_hash(two)
    assert draw_hash(one) == draw_hash(two)


def test_another_plot_changes_draw_alone(tmp_path: Path) -> None:
    one = _load(tmp_path / "one.py")
    two = _load(tmp_path / "two.py", drawing="{'a': 1}")
    assert measure_hash(one) == measure_hash(two)
    assert draw_hash(one) != draw_hash(two)


def test_the_config_counts() -> None:
    @dataclasses.dataclass
    class Config:
        tokens: int = 4

    class Look(AnalysisBase):
        TARGET = object
        CONFIG = Config

    one, two = Look(), Look()
    two.args.tokens = 8
    assert measure_hash(one) != measure_hash(two)


def test_a_class_without_source_is_told_apart_by_its_code() -> None:
    namespace: dict[str, Any] = {"AnalysisBase": AnalysisBase}
    exec(
        "class A(AnalysisBase):\n TARGET = int\n def analyze(self, l, i): return i.x\n"
        "class B(AnalysisBase):\n TARGET = int\n def analyze(self, l, i): return i.y\n",
        namespace,
    )
    assert measure_hash(namespace["A"]()) != measure_hash(namespace["B"]())
