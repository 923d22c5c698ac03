"""The releases of JAX and Flax that are tried are the ones that are promised."""

import re
import tomllib

import pytest

from tests.architecture.project import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def pins(name: str) -> dict[str, str]:
    """Return package -> version of a pair that the Makefile names."""
    found = re.search(rf"^{name} := (.*)$", MAKEFILE, flags=re.MULTILINE)
    assert found
    return dict(pin.split("==") for pin in found[1].split())


def test_the_oldest_tried_are_the_oldest_allowed_and_nothing_newer_is_refused() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    requirements = project["project"]["dependencies"]
    for package, version in pins("FLOOR").items():
        assert f"{package}>={version}" in requirements


@pytest.mark.parametrize("pair", ["FLOOR", "MIDDLE"])
def test_the_readme_names_the_tried_pairs(pair: str) -> None:
    (line,) = re.findall(
        r"^The tests run on .*?\n\n",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE | re.DOTALL,
    )
    assert set(pins(pair)) == {"jax", "flax"}
    assert set(pins(pair).values()) <= set(re.findall(r"\d+\.\d+\.\d+", line))
