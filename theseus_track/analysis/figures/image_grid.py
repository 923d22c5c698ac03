"""The `image_grid` helper: pictures, filters and maps side by side, as a View."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from theseus_track.analysis.figures.arrays import bounded, extent_of, numbers, plain
from theseus_track.analysis.figures.canvas import look_for
from theseus_track.analysis.figures.cells import TIMES, count_kinds
from theseus_track.analysis.figures.colour import color_scale
from theseus_track.analysis.figures.drawing import paint
from theseus_track.analysis.figures.reduction import block_size, reduced
from theseus_track.errors import BadInput
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["image_grid"]

_MAX_IMAGES = 64
_MAX_SIDE = 256
_CHANNELS = (1, 3, 4)


def image_grid(
    data: Any,
    *,
    titles: Sequence[Any] | None = None,
    cols: int | None = None,
    channels: bool = False,
    vmin: float | None = None,
    vmax: float | None = None,
    cmap: Any = None,
    center: float | None = None,
    robust: bool = False,
    cbar: bool = True,
    ax: "Axes | None" = None,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    theme: str | None = None,
) -> "Figure":
    """Draw images side by side, on one scale.

    Args:
        data: [image, row, column], [image, row, column, channel] with 1, 3 or 4
            channels, or one image [row, column]; a list of images, or a dict from
            name to image, all of one shape. Colours are bytes, or floats from 0 to 1;
            floats beyond that are scaled, all images alike, and the figure says so.
        titles: A text for each image; the keys of a dict by default.
        cols: Images in a row, or None to choose.
        channels: Whether the last axis of a three-dimensional array is colour, so
            that it is one image [row, column, channel].
        vmin: Lower end of the greys, or None to choose.
        vmax: Upper end of the greys, or None to choose.
        cmap: A colormap for images without colour; "gray" for values of one sign,
            else the diverging map of the theme.
        center: The value of the colormap's middle, or None to choose.
        robust: Take the 2nd and 98th percentile instead of the extremes.
        cbar: Whether images without colour have a colour bar.
        ax: Axes to draw into, or None for a new figure.
        title: Above the images.
        xlabel: Below the images.
        ylabel: Beside the images.
        theme: "light", "dark", "serif" or "serif-dark"; by default that of the figure
            of `ax`, else "light".

    Returns:
        A new figure, or the figure of `ax`; it carries its View. Above 64 images some
        are left out, and above 256 pixels a side they are averaged; it says so.

    Raises:
        BadInput: When the images differ in shape or are no images.

    Example:
        >>> import numpy as np
        >>> from theseus_track.analysis.figures import image_grid, view_of
        >>> view_of(image_grid(np.zeros((3, 8, 8)))).arrays["values"].shape
        (3, 8, 8)
    """
    look = look_for(theme, ax)
    raw, names = _read(data, titles)
    bytes_given = raw.dtype == np.uint8
    images = _shaped(numbers(raw, "data"), channels=channels)
    total, shape = len(images), images.shape[1:]
    notes: list[str] = []
    images, names = _some(images, names, notes)
    counts = count_kinds(images, np.ones(images.shape, bool))
    size = images.size
    extent = extent_of(images, raw)
    images = _smaller(bounded(images, notes), notes)
    scale: dict[str, Any] = {"colored": images.ndim == 4}
    if images.ndim == 4:
        images = _as_colors(images, notes, bytes_given=bytes_given)
    else:
        scale |= color_scale(
            images, look, vmin=vmin, vmax=vmax, center=center, robust=robust,
            cmap=cmap, norm=None,
        )  # fmt: skip
        if cmap is None and scale["center"] is None:
            scale["cmap"] = "gray"
        images = images.astype(np.float32)
    view = View(
        kind="image_grid",
        arrays={"values": images},
        labels={
            "title": title,
            "x": xlabel,
            "y": ylabel,
            "panels": list(names),
            "notes": list(notes),
            "counts": {**counts},
        },
        scale={
            **scale,
            "of": size,
            "cols": cols,
            "colorbar": bool(cbar) and not scale["colored"],
            "colorbar_options": {},
            "theme": look.name,
        },
        caption="; ".join(
            [f"{total} images of {TIMES.join(map(str, shape))}: {extent}", *notes]
        ),
    )
    return paint(view, look, ax=ax)


def _read(data: Any, titles: Sequence[Any] | None) -> tuple[np.ndarray, list[str]]:
    names = [] if titles is None else [str(title) for title in titles]
    if isinstance(data, Mapping):
        names = names or [str(key) for key in data]
        data = list(data.values())
    if isinstance(data, list | tuple):
        items = [plain(item, f"image {index}") for index, item in enumerate(data)]
        shapes = list(dict.fromkeys(item.shape for item in items))
        if len(shapes) > 1:
            raise BadInput(
                f"The images have different shapes: {', '.join(map(str, shapes[:5]))}. "
                "Crop or scale them to one, or draw each with its own ax=."
            )
        data = np.stack(items) if items else np.zeros((0, 0, 0))
    array = plain(data, "data")
    return array, names


def _shaped(images: np.ndarray, *, channels: bool) -> np.ndarray:
    """Return [image, row, column] or [image, row, column, channel]."""
    alone = 3 if channels else 2
    if images.ndim == alone:
        images = images[np.newaxis]
    if images.ndim == 4 and images.shape[-1] in _CHANNELS:
        return images[..., 0] if images.shape[-1] == 1 else images
    if images.ndim == 3:
        return images
    raise BadInput(
        f"data has shape {images.shape}; images are [image, row, column] or [image, "
        "row, column, channel] with 1, 3 or 4 channels last. Move the axes, such as "
        "by np.moveaxis(data, 1, -1)."
    )


def _some(
    images: np.ndarray, names: list[str], notes: list[str]
) -> tuple[np.ndarray, list[str]]:
    count = len(images)
    if names and len(names) != count:
        raise BadInput(f"titles has {len(names)} texts for {count} images.")
    if count <= _MAX_IMAGES:
        return images, names
    notes.append(f"{_MAX_IMAGES} of {count} images")
    chosen = np.linspace(0, count - 1, _MAX_IMAGES).round().astype(int)
    return images[chosen], [names[index] for index in chosen if names]


def _smaller(images: np.ndarray, notes: list[str]) -> np.ndarray:
    if not images.size:
        return images
    blocks = (
        block_size(images.shape[1], _MAX_SIDE, _MAX_SIDE),
        block_size(images.shape[2], _MAX_SIDE, _MAX_SIDE),
    )
    if blocks == (1, 1):
        return images
    notes.append(f"each pixel is the mean of {blocks[0]}{TIMES}{blocks[1]}")
    planes = np.moveaxis(images, -1, 1) if images.ndim == 4 else images
    small, _ = reduced(planes, np.ones(planes.shape, bool), blocks)
    return np.moveaxis(small, 1, -1) if images.ndim == 4 else small


def _as_colors(
    images: np.ndarray, notes: list[str], *, bytes_given: bool
) -> np.ndarray:
    """Return floats from 0 to 1, NaN where a channel is not finite, in float32."""
    if bytes_given:
        return (images / 255.0).astype(np.float32)
    finite = np.isfinite(images)
    low = images.min(where=finite, initial=np.inf)
    high = images.max(where=finite, initial=-np.inf)
    if low < 0.0 or high > 1.0:
        notes.append(f"colours scaled from {low:.4g} to {high:.4g}")
        images = (images - low) / ((high - low) or 1.0)
    return np.where(finite, images, np.nan).astype(np.float32)
