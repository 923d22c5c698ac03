"""The sink of the documentation passes the suite, and is the one of the example."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from tests.architecture.page import blocks
from theseus_track.sinks import Sink
from theseus_track.sinks.conformance import Shown, SinkConformance

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "own_sink.py"


def _example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("own_sink", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestTheExample(SinkConformance):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.directory = tmp_path
        self.module = _example()

    def make(self) -> Sink:
        sink: Sink = self.module.LinesSink(str(self.directory))
        return sink

    def abandon(self, sink: Sink) -> None:
        cast("Any", sink).file.close()

    def shown(self) -> Iterator[Shown]:
        for file in self.directory.glob("*.jsonl"):
            for line in file.read_text().splitlines():
                yield from self._one(json.loads(line))

    def _one(self, line: dict[str, Any]) -> Iterator[Shown]:
        content = line["content"]
        where = {"step": line["step"], "wall_time": line["time"], "part": line["part"]}
        if line["kind"] == "metrics":
            for name, number in content.items():
                yield Shown(kind="metric", name=name, content=float(number), **where)
        elif line["kind"] == "figure":
            pixels = bytes.fromhex(content)
            yield Shown(kind="figure", name=line["name"], content=pixels, **where)
        else:
            yield Shown(kind="json", name=line["name"], content=content, **where)


def test_the_page_has_the_sink_of_the_example() -> None:
    page = (ROOT / "docs" / "sinks.md").read_text(encoding="utf-8")
    first = next(block for block in blocks(page) if block.language == "python")
    text = EXAMPLE.read_text(encoding="utf-8")
    assert text.partition('"""\n\n')[2] == first.source


def test_it_is_short() -> None:
    body = EXAMPLE.read_text(encoding="utf-8").partition("class ")[2].splitlines()
    assert len([line for line in body if line.strip()]) <= 40


def test_it_is_made_by_its_name(tmp_path: Path) -> None:
    assert _example().make_sink(str(tmp_path), None).directory == tmp_path
