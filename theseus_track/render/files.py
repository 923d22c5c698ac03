"""Turn one Figure into the bytes of its PNG and PDF files."""

import contextlib
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

__all__ = ["figure_files", "private_settings"]

_MARGIN = 0.05
"""Inches around what sticks out of a figure."""


def figure_files(figure: "Figure") -> dict[str, bytes]:
    """Draw a figure as PNG and PDF.

    Reads and sets `matplotlib.rcParams`, so it runs in the worker, or inside
    `private_pyplot`.

    Args:
        figure: Any figure; its size and resolution are kept, except that the page
            of one without a layout engine grows where a label would be cut off.

    Returns:
        "png" and "pdf" -> the bytes of the file. The same figure gives the same
        bytes; text in the PDF stays text, in TrueType fonts.
    """
    # Type 3 fonts, matplotlib's default, are refused by journals and cannot be
    # edited; 42 embeds TrueType.
    matplotlib.rcParams["pdf.fonttype"] = 42
    try:
        page = _page(figure)
        png = _save(figure, "png", page, None)
    except ValueError:
        # A token such as "$\\frac $" in a title is no maths, though it looks like it.
        if not _show_broken_maths_literally(figure):
            raise
        page = _page(figure)
        png = _save(figure, "png", page, None)
    with _laid_out(figure):
        # Without a date, equal figures are equal files in a content-addressed store.
        pdf = _save(figure, "pdf", page, {"CreationDate": None})
    return {"png": png, "pdf": pdf}


def _page(figure: "Figure") -> "Bbox | None":
    """Return the page in inches where the figure's own one would cut something off."""
    from matplotlib.transforms import Bbox

    if figure.get_layout_engine() is not None:
        return None
    figure.draw_without_rendering()
    drawn = figure.get_tightbbox()
    own = Bbox.from_bounds(0.0, 0.0, *figure.get_size_inches())
    page = Bbox.union([own, drawn])
    return None if np.allclose(page, own) else page.padded(_MARGIN)


def _show_broken_maths_literally(figure: "Figure") -> bool:
    """Stop parsing texts that cannot be parsed as maths; say whether there were any."""
    from matplotlib.mathtext import MathTextParser
    from matplotlib.text import Text

    parser: MathTextParser[Any] = MathTextParser("path")
    found = False
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        if text.get_parse_math() and text.get_text().count("$") > 1:
            try:
                parser.parse(text.get_text())
            except ValueError:
                text.set_parse_math(False)
                found = True
    return found


@contextlib.contextmanager
def _laid_out(figure: "Figure") -> Iterator[None]:
    """Keep the layout of the drawing before: solving it again takes half the time."""
    engine = figure.get_layout_engine()
    if engine is None:
        yield
        return
    figure.set_layout_engine("none")
    try:
        yield
    finally:
        figure.set_layout_engine(engine)


def private_settings() -> dict[str, object]:
    """Return the calling thread's rcParams, apart from those that choose a backend.

    Some of them act when a figure is drawn, not when it is made (the fonts behind
    "sans-serif", for one), so the worker must draw under the same ones.
    """
    params = matplotlib.rcParams
    # `_get` is documented as stable; params["backend"] would start a GUI toolkit.
    keys = [key for key in params if not key.startswith("backend")]
    return {key: params._get(key) for key in keys}  # noqa: SLF001


def _save(
    figure: "Figure", kind: str, page: "Bbox | None", metadata: dict[str, None] | None
) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, bbox_inches=page, metadata=metadata)
    return buffer.getvalue()
