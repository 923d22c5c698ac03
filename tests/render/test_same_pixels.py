"""A figure has the same pixels wherever it is made and drawn."""

import concurrent.futures
import hashlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.figures.specimens import SPECIMENS
from theseus_track.render import Renderer, normalise, private_pyplot
from theseus_track.render.files import figure_files

NAMES = ("heatmap_panels", "line_band", "token_strip")


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    made = Renderer()
    yield made
    made.close()


@pytest.fixture(scope="module")
def here() -> dict[str, bytes]:
    """Return the PNGs as the main thread makes and draws them."""
    return {name: figure_files(SPECIMENS[name]())["png"] for name in NAMES}


@pytest.mark.slow
def test_the_worker_draws_the_same(renderer: Renderer, here: dict[str, bytes]) -> None:
    # Starts a process, and draws PNG and PDF of three figures in it.
    for name, png in here.items():
        with private_pyplot():
            (part,) = renderer.render(normalise(SPECIMENS[name]()))
        assert part.blobs["png"] == png, name
        assert part.view is not None


@pytest.mark.slow
def test_background_threads_draw_the_same(here: dict[str, bytes]) -> None:
    # Draws each of three figures three times, as PNG and PDF.
    def draw(name: str) -> tuple[str, bytes]:
        with private_pyplot():
            return name, figure_files(SPECIMENS[name]())["png"]

    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        found = list(threads.map(draw, NAMES * 3))
    assert all(png == here[name] for name, png in found)


@pytest.mark.slow
@pytest.mark.parametrize("plotly", [False, True], ids=["plain", "plotly"])
def test_another_process_draws_the_same(plotly: bool, here: dict[str, bytes]) -> None:
    # Starts an interpreter that imports JAX; plotly, where it is installed, is a
    # library that trackers turn matplotlib figures into once they can import it.
    if plotly and importlib.util.find_spec("plotly") is None:
        pytest.skip("plotly is not installed")
    code = f"""
import hashlib
{"import plotly.graph_objects, plotly.tools" if plotly else ""}
from tests.analysis.figures.specimens import SPECIMENS
from theseus_track.render.files import figure_files
for name in {NAMES!r}:
    print(hashlib.sha256(figure_files(SPECIMENS[name]())["png"]).hexdigest())
"""
    ran: Any = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "JAX_PLATFORMS": "cpu"},
    )
    expected = [hashlib.sha256(here[name]).hexdigest() for name in NAMES]
    assert ran.stdout.split() == expected
