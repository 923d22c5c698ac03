"""What is handed to users: the wheel's contents, its version and the changelog."""

import re
import tomllib
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

import theseus_track
from tests.architecture.project import ROOT, run


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Return the built wheel, opened."""
    directory = tmp_path_factory.mktemp("wheel")
    words = ["-m", "hatchling", "build", "--target", "wheel", "--directory"]
    run([*words, str(directory)])
    (path,) = Path(directory).glob("*.whl")
    return zipfile.ZipFile(path)


def _sources() -> set[str]:
    """Return the files of both packages as they lie in the wheel."""
    homes = (ROOT / "theseus_track", ROOT / "analyses" / "theseus_analyses")
    return {
        path.relative_to(home.parent).as_posix()
        for home in homes
        for path in home.rglob("*.py")
    }


@pytest.mark.slow  # builds the wheel
def test_the_wheel_holds_both_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    version = theseus_track.__version__
    assert {name.split("/")[0] for name in names} == {
        "theseus_track",
        "theseus_analyses",
        f"theseus_track-{version}.dist-info",
    }
    assert {name for name in names if name.endswith(".py")} == _sources()


@pytest.mark.slow  # builds the wheel
def test_the_wheel_holds_the_pages(wheel: zipfile.ZipFile) -> None:
    pages = ROOT / "theseus_track" / "dashboard" / "static"
    assert {file.name for file in pages.iterdir()} == {
        "index.html",
        "app.js",
        "app.css",
    }
    for file in pages.iterdir():
        shipped = wheel.read(f"theseus_track/dashboard/static/{file.name}")
        assert shipped == file.read_bytes()


@pytest.mark.slow  # builds the wheel
def test_the_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    info = f"theseus_track-{theseus_track.__version__}.dist-info"
    headers = HeaderParser().parsestr(wheel.read(f"{info}/METADATA").decode())
    assert headers["Version"] == theseus_track.__version__
    assert headers["License-Expression"] == "Apache-2.0"
    assert b"Apache License" in wheel.read(f"{info}/licenses/LICENSE")
    command = b"theseus-track = theseus_track.cli:main"
    assert command in wheel.read(f"{info}/entry_points.txt")


@pytest.mark.slow  # builds the wheel
@pytest.mark.parametrize("package", ["theseus_track", "theseus_analyses"])
def test_the_wheel_tells_type_checkers_that_it_is_typed(
    wheel: zipfile.ZipFile, package: str
) -> None:
    assert f"{package}/py.typed" in wheel.namelist()


def test_the_newest_heading_of_the_changelog_is_the_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[?([^\]\s]+)\]?", changelog, flags=re.MULTILINE)
    assert headings[0] == theseus_track.__version__


def test_the_tools_are_pinned_exactly() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    tools = [*extras["dev"], *extras["docs"]]
    assert [tool for tool in tools if not re.fullmatch(r"[\w-]+==[\w.]+", tool)] == []


def test_every_registered_analysis_can_be_loaded() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    places = project["entry-points"]["theseus_track.analyses"].values()
    assert all(place.startswith("theseus_analyses.") for place in places)
    pairs = [place.split(":") for place in places]
    run(["-c", "\n".join(f"from {module} import {name}" for module, name in pairs)])


def test_contributing_is_read_in_one_sitting() -> None:
    lines = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 60
