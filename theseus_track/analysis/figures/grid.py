"""The `grid` helper: small multiples of any other helper on a shared scale."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from theseus_track.analysis.figures.bar import bar
from theseus_track.analysis.figures.heatmap import heatmap
from theseus_track.analysis.figures.histogram import histogram
from theseus_track.analysis.figures.image_grid import image_grid
from theseus_track.analysis.figures.line import line
from theseus_track.analysis.figures.multiples import multiples
from theseus_track.analysis.figures.scatter import scatter
from theseus_track.analysis.figures.token_strip import token_strip
from theseus_track.errors import BadInput, describe_unknown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["grid"]

_HELPERS: "dict[str, Callable[..., Figure]]" = {
    "heatmap": heatmap,
    "bar": bar,
    "line": line,
    "scatter": scatter,
    "histogram": histogram,
    "image_grid": image_grid,
    "token_strip": token_strip,
}


def grid(
    helper: str,
    panels: Any,
    *,
    cols: int | None = None,
    share: bool = True,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    theme: str | None = None,
    **options: Any,
) -> "Figure":
    """Draw small multiples: one panel for each of several data.

    Args:
        helper: Which helper draws a panel: "heatmap", "bar", "line", "scatter",
            "histogram", "image_grid" or "token_strip".
        panels: A dict from the name of a panel to its data, such as the values of
            several paths; or a list, or an array with a leading axis of panels.
        cols: Panels in a row, or None to choose.
        share: Whether colours, bins, groups and axes mean the same in all panels.
        title: Above all panels.
        xlabel: Below all panels; by default what they have in common.
        ylabel: Beside all panels; by default what they have in common.
        theme: "light", "dark", "serif" or "serif-dark"; "light" by default.
        **options: Given to the helper for each panel.

    Returns:
        A new figure that carries one View of kind "grid". Above 36 panels some are
        left out, and it says so.

    Raises:
        BadInput: When the helper is unknown or a panel cannot be drawn.

    Example:
        >>> from theseus_track.analysis.figures import grid, view_of
        >>> view_of(grid("line", {"a": [1, 2], "b": [2, 3]})).kind
        'grid'
    """
    if helper not in _HELPERS:
        raise BadInput(f"grid: {describe_unknown('helper', helper, _HELPERS)}")
    if "ax" in options:
        raise BadInput("grid makes a figure of its own and cannot honour ax=.")
    return multiples(
        _HELPERS[helper],
        _named(panels),
        cols=cols,
        share=share,
        title=title,
        xlabel=xlabel,
        ylabel=ylabel,
        theme=theme,
        **options,
    )


def _named(panels: Any) -> Mapping[str, Any]:
    """Return name -> data; a data frame has one panel for each column."""
    if isinstance(panels, Mapping):
        return {str(key): panels[key] for key in panels}
    if hasattr(panels, "columns"):
        return {str(key): panels[key] for key in panels.columns}
    if hasattr(panels, "__len__") and getattr(panels, "ndim", None) != 0:
        return {str(index): item for index, item in enumerate(panels)}
    raise BadInput(
        f"panels is of type {type(panels).__name__}; pass a dict from name to data, a "
        "list, or an array with a leading axis."
    )
