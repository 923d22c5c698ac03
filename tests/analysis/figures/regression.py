"""Small images of the specimens, to be compared with the stored ones.

`python -m tests.analysis.figures.regression` stores them anew, after somebody has
looked at what changed (`make figures`).
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.analysis.figures.specimens import DIFFICULT, SPECIMENS, Specimen

__all__ = ["BASELINES", "CASES", "difference", "read", "small"]

BASELINES = Path(__file__).parent / "baselines"
DPI = 64
BLOCK = 4

CASES: Mapping[str, tuple[Specimen, str]] = {
    **{name: (draw, "light") for name, draw in SPECIMENS.items()},
    **{name: (draw, "light") for name, draw in DIFFICULT.items()},
    "heatmap_panels-dark": (SPECIMENS["heatmap_panels"], "dark"),
    "line-dark": (SPECIMENS["line"], "dark"),
    "token_strip-dark": (SPECIMENS["token_strip"], "dark"),
    "bar_errors-serif": (SPECIMENS["bar_errors"], "serif"),
    "grid_lines-serif-dark": (SPECIMENS["grid_lines"], "serif-dark"),
}
"""File name -> the specimen and its theme."""


def small(figure: Any) -> np.ndarray:
    """Draw a figure small: [row, column, RGB], 0 to 255."""
    figure.set_dpi(DPI)
    figure.canvas.draw()
    pixels: np.ndarray = np.asarray(figure.canvas.buffer_rgba())[:, :, :3].copy()
    return pixels


def read(path: Path) -> np.ndarray:
    """Read a stored image: [row, column, RGB], 0 to 255."""
    return np.asarray(Image.open(path).convert("RGB"))


def difference(found: np.ndarray, stored: np.ndarray) -> float:
    """Return how far the most different blocks of two images are apart, 0 to 255.

    Blocks of four by four pixels are compared by their means: antialiasing, which
    depends on the version of FreeType, moves ink within them.
    """
    if found.shape != stored.shape:
        return 255.0
    return float(np.abs(_means(found) - _means(stored)).max())


def _means(image: np.ndarray) -> np.ndarray:
    rows, columns = (size // BLOCK * BLOCK for size in image.shape[:2])
    cut = image[:rows, :columns].astype(np.float64)
    means: np.ndarray = cut.reshape(
        rows // BLOCK, BLOCK, columns // BLOCK, BLOCK, 3
    ).mean(axis=(1, 3))
    return means


def _store() -> None:
    BASELINES.mkdir(exist_ok=True)
    for old in BASELINES.glob("*.png"):
        old.unlink()
    for name, (draw, theme) in CASES.items():
        image = Image.fromarray(small(draw(theme=theme)))
        buffer = io.BytesIO()
        image.save(buffer, format="png", optimize=True)
        (BASELINES / f"{name}.png").write_bytes(buffer.getvalue())


if __name__ == "__main__":
    _store()
