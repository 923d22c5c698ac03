"""The built documentation, made once for the tests that read it."""

import html
import re
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.architecture.project import run


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the documentation, built strictly."""
    directory = tmp_path_factory.mktemp("site")
    run(["-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(directory)])
    return directory


@pytest.fixture(scope="session")
def documented(site: Path) -> set[str]:
    """Return every qualified name that the API page shows."""
    packed = (site / "objects.inv").read_bytes().split(b"zlib.\n", 1)[1]
    lines = zlib.decompress(packed).decode().splitlines()
    return {line.split(" ", 1)[0] for line in lines}


@pytest.fixture(scope="session")
def page_text(site: Path) -> Callable[[str], str]:
    """Return a function that gives the text of a page, by the page's name."""

    def read(name: str) -> str:
        source = (site / name / "index.html").read_text(encoding="utf-8")
        article = re.search(r"<article.*?</article>", source, flags=re.DOTALL)
        assert article is not None, f"the page {name} has no article"
        return html.unescape(re.sub(r"<[^>]+>", "", article[0]))

    return read
