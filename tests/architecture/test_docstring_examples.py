"""The examples in the docstrings run as they stand."""

import doctest
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.page import blocks
from tests.architecture.project import ROOT, run
from tests.architecture.surface import public_names


def _docstrings() -> Iterator[tuple[str, str, str]]:
    """Yield layer, name and docstring of each public name and public method."""
    for layer, name, value in public_names():
        if layer == "theseus_track" or not callable(value):
            continue  # what the root exports belongs to a layer
        yield layer, name, inspect.getdoc(value) or ""
        if inspect.isclass(value):
            for attribute in (x for x in vars(value) if not x.startswith("_")):
                text = inspect.getdoc(getattr(value, attribute)) or ""
                yield layer, f"{name}.{attribute}", text


@pytest.mark.slow  # imports JAX and compiles the examples
@pytest.mark.timeout(300)
def test_every_python_block_runs(tmp_path: Path) -> None:
    pages = []
    for layer, name, text in _docstrings():
        if any(block.language == "python" for block in blocks(text)):
            page = tmp_path / f"{layer}.{name}.md"
            page.write_text(text, encoding="utf-8")
            pages.append(str(page))
    assert pages
    runner = ROOT / "tests" / "architecture" / "page.py"
    run([str(runner), *pages], cwd=tmp_path)


def test_every_session_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    failures: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    for layer, name, text in _docstrings():
        names = dict(vars(importlib.import_module(layer)))
        session = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
        runner.run(session, out=failures.append)
    assert "".join(failures) == ""
