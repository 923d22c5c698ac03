"""The documentation does what it says: each page is run from the top."""

import re
from pathlib import Path

import pytest

from tests.architecture.page import blocks, run_page, shell_lines
from tests.architecture.project import PAGES, ROOT, run

RUN = {"python", "bash"}
SHOWN = {"text", "toml", "json"}
PROGRAMS = {"theseus-track", "make", "pip", "git", "cd", "tensorboard"}


@pytest.mark.slow  # trains models and runs commands, as a reader does
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs_from_the_top(page: Path, tmp_path: Path) -> None:
    if any(block.language in RUN for block in blocks(page.read_text("utf-8"))):
        runner = ROOT / "tests" / "architecture" / "page.py"
        run([str(runner), str(page)], cwd=tmp_path)
    assert not page.read_text("utf-8").count("```") % 2


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem
)
def test_a_page_has_only_blocks_that_the_tests_understand(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    for block in blocks(page.read_text(encoding="utf-8")):
        where = f"{page.name}:{block.line}"
        assert block.language in RUN | SHOWN, f"{where} is {block.language!r}"
        if block.language == "bash":
            for words in shell_lines(block.source):
                assert words[0] in PROGRAMS, f"{where}: {words}"
                if words[0] == "make":
                    assert set(words[1:]) <= targets, f"{where}: {words}"


def test_a_page_shares_one_namespace_and_keeps_its_line_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n```python\na = 1\n```\n\n```text\nb = 2\n```\n\n"
        "1. An item.\n\n    ```python\n    c = a / 0\n    ```\n"
    )
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(page)
    assert caught.traceback[-1].lineno + 1 == 14
    assert (tmp_path / "page.py").read_text().splitlines()[13] == "c = a / 0"


def test_a_command_that_fails_fails_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```bash\ntheseus-track no-such-command\n```\n")
    with pytest.raises(Exception, match="no-such-command"):
        run_page(page)


def test_shell_lines_are_joined_and_lose_their_comments() -> None:
    source = "# a comment\ntheseus-track runs \\\n  --json  # another\n\nmake test\n"
    assert list(shell_lines(source)) == [
        ["theseus-track", "runs", "--json"],
        ["make", "test"],
    ]
