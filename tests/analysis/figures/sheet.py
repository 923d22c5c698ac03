"""Draw every specimen into one PDF, and into contact sheets that show them small.

`make figures` runs it: `python -m tests.analysis.figures.sheet FOLDER`.
"""

import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_pdf import PdfPages
from PIL import Image

from tests.analysis.figures.regression import BASELINES
from tests.analysis.figures.specimens import DIFFICULT, SPECIMENS
from theseus_track.analysis.figures.theme import THEMES
from theseus_track.render import private_pyplot

WIDTH = 2200
SMALL = 300
GAP = 16
ROW = 3 * (SMALL + GAP) + GAP
QUALITY = 88
GREY = (160, 160, 160)


def main(folder: Path) -> None:
    """Write the files.

    Args:
        folder: Gets `specimens.pdf` with every helper in every theme; for each theme
            a sheet at full size, one with figures 300 pixels wide, and of that the
            part that the documentation shows; and `baselines.png`, the stored images
            of the regression suite.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with private_pyplot():
        drawn = {theme: _figures(theme) for theme in THEMES}
        _write_pdf(
            folder / "specimens.pdf", [f for made in drawn.values() for f in made]
        )
        for theme, made in drawn.items():
            images = [_image(figure) for figure in made]
            contact(images).save(folder / f"{theme}.png")
            small = [scaled(image, SMALL) for image in images]
            contact(small, ROW).save(folder / f"{theme}-300px.png")
            helpers = contact(small[: len(SPECIMENS)], ROW)
            helpers.save(folder / f"helpers-{theme}.jpg", quality=QUALITY)
    stored = [Image.open(path) for path in sorted(BASELINES.glob("*.png"))]
    contact([image.convert("RGB") for image in stored]).save(folder / "baselines.png")


def scaled(image: Image.Image, width: int) -> Image.Image:
    """Return an image as wide as told, in proportion."""
    height = round(image.height * width / image.width)
    return image.resize((width, height), Image.Resampling.LANCZOS)


def contact(images: Sequence[Image.Image], width: int = WIDTH) -> Image.Image:
    """Put images side by side, in rows of at most `width` pixels."""
    places, x, y, height = [], GAP, GAP, 0
    for image in images:
        if x > GAP and x + image.width > width:
            x, y, height = GAP, y + height + GAP, 0
        places.append((x, y))
        x, height = x + image.width + GAP, max(height, image.height)
    sheet = Image.new("RGB", (width, y + height + GAP), GREY)
    for image, place in zip(images, places, strict=True):
        sheet.paste(image, place)
    return sheet


def _figures(theme: str) -> list[Any]:
    made = [draw(theme=theme) for draw in SPECIMENS.values()]
    if theme in ("light", "dark"):
        made += [draw(theme=theme) for draw in DIFFICULT.values()]
    return made


def _write_pdf(path: Path, made: Iterable[Any]) -> None:
    mpl.rcParams["pdf.fonttype"] = 42
    with PdfPages(path) as pages:
        for figure in made:
            pages.savefig(figure)


def _image(figure: Any) -> Image.Image:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return Image.open(buffer).convert("RGB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
