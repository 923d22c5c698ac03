"""The `token_strip` helper: a text whose tokens are coloured by numbers, as a View."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from theseus_track.analysis.figures.arrays import bounded, extent_of, numbers, plain
from theseus_track.analysis.figures.canvas import look_for
from theseus_track.analysis.figures.cells import count_kinds
from theseus_track.analysis.figures.colour import color_scale
from theseus_track.analysis.figures.drawing import paint
from theseus_track.errors import BadInput
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["token_strip"]

_MAX_TOKENS = 600


def token_strip(
    data: Any,
    tokens: Sequence[Any] | None = None,
    *,
    vmin: float | None = None,
    vmax: float | None = None,
    cmap: Any = None,
    center: float | None = None,
    robust: bool = False,
    norm: Any = None,
    cbar: bool = True,
    ax: "Axes | None" = None,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    theme: str | None = None,
) -> "Figure":
    r"""Draw a text in which each token has the colour of its number.

    Tokens are shown literally and in reading order; a line ends where it is full and
    after a newline. Colours are chosen as in `heatmap`.

    Args:
        data: One number for each token, [token]; or a dict or series from token to
            number.
        tokens: The texts, as many as numbers; "\n" and the like are escaped.
        vmin: Lower end of the colours, or None to choose.
        vmax: Upper end of the colours, or None to choose.
        cmap: A colormap, its name, a list of colours, or None to choose.
        center: The value of the colormap's middle, or None to choose.
        robust: Take the 2nd and 98th percentile instead of the extremes.
        norm: None, "linear" or "log".
        cbar: Whether there is a colour bar.
        ax: Axes to draw into, or None for a new figure.
        title: Above the text.
        xlabel: Below the text.
        ylabel: Beside the text.
        theme: "light", "dark", "serif" or "serif-dark"; by default that of the figure
            of `ax`, else "light".

    Returns:
        A new figure, or the figure of `ax`; it carries its View, with all tokens as
        they were given. Above 600 tokens the first ones are drawn, and it says so.

    Raises:
        BadInput: When there are not as many tokens as numbers.

    Example:
        >>> from theseus_track.analysis.figures import token_strip, view_of
        >>> view_of(token_strip([0.5, -1.0], ["The", " cat"])).labels["tokens"]
        ['The', ' cat']
    """
    look = look_for(theme, ax)
    values, texts = _read(data, tokens)
    total = values.size
    notes: list[str] = []
    extent = extent_of(values, data)
    counts = count_kinds(values, np.ones(values.shape, bool))
    if total > _MAX_TOKENS:
        notes.append(f"the first {_MAX_TOKENS} of {total} tokens")
        values, texts = values[:_MAX_TOKENS], texts[:_MAX_TOKENS]
    drawn = bounded(values, notes)
    scale = color_scale(
        drawn,
        look,
        vmin=vmin,
        vmax=vmax,
        center=center,
        robust=robust,
        cmap=cmap,
        norm=norm,
    )
    view = View(
        kind="token_strip",
        arrays={"values": drawn},
        labels={
            "title": title,
            "x": xlabel,
            "y": ylabel,
            "tokens": list(texts),
            "notes": list(notes),
            "counts": {**counts},
        },
        scale={
            **scale,
            "of": total,
            "colorbar": bool(cbar),
            "colorbar_options": {},
            "theme": look.name,
        },
        caption="; ".join([f"{total} tokens: {extent}", *notes]),
    )
    return paint(view, look, ax=ax)


def _read(data: Any, tokens: Sequence[Any] | None) -> tuple[np.ndarray, list[str]]:
    if isinstance(data, Mapping):
        keys, data = list(data), [data[key] for key in data]
        tokens = keys if tokens is None else tokens
    elif tokens is None and hasattr(data, "index") and hasattr(data, "to_numpy"):
        tokens = list(data.index)
    values = np.atleast_1d(numbers(data, "data"))
    if values.ndim != 1:
        raise BadInput(
            f"data has shape {values.shape}; a token strip has one number for each "
            "token. Choose a row, such as data[0], or draw all of them with "
            "grid('token_strip', data, tokens=...) or heatmap."
        )
    if tokens is None:
        raise BadInput("token_strip needs tokens=, the texts of the numbers. Pass it.")
    texts = [str(token) for token in plain(list(tokens), "tokens").ravel().tolist()]
    if len(texts) != len(values):
        raise BadInput(
            f"There are {len(texts)} tokens for {len(values)} numbers; make them equal."
        )
    return values, texts
