"""Make figures without pyplot, in the theme, carrying their View."""

from typing import TYPE_CHECKING, Any

from theseus_track.analysis.figures.text import installed
from theseus_track.analysis.figures.theme import Theme, theme_named
from theseus_track.errors import BadInput
from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "attach",
    "figure",
    "look_for",
    "new_figure",
    "style_axes",
]

_PAD = 0.04


def figure(
    rows: int = 1, cols: int = 1, *, theme: str | None = None, **size: Any
) -> "tuple[Figure, Any]":
    """Make a figure and its axes, as `plt.subplots` does, without pyplot.

    Args:
        rows: Rows of axes, >= 1.
        cols: Columns of axes, >= 1.
        theme: "light", "dark", "serif" or "serif-dark"; what helpers draw into the
            axes takes it over.
        **size: `width` and `height` in inches, or `figsize`; `dpi`.

    Returns:
        The figure, and one Axes or, for more than one, an array of Axes as
        `plt.subplots` returns it. Nothing is registered with pyplot, and every
        helper can draw into the axes by `ax=`.

    Raises:
        BadInput: For another keyword, or an unknown theme.
    """
    unknown = sorted(set(size) - {"width", "height", "figsize", "dpi"})
    if unknown:
        raise BadInput(
            f"figure() has no parameter {unknown[0]!r}; it takes rows, cols, theme, "
            "width, height, figsize and dpi. Set others on the returned figure."
        )
    width, height = size.get("figsize") or (3.2 * cols + 0.8, 2.6 * rows + 0.6)
    look = theme_named(theme)
    made = new_figure(
        size.get("width", width), size.get("height", height), look, size.get("dpi")
    )
    made.theseus_theme = look.name  # type: ignore[attr-defined]
    axes = made.subplots(rows, cols)
    for ax in made.axes:
        style_axes(ax, look)
    return made, axes


def look_for(theme: str | None, ax: "Axes | None") -> Theme:
    """Return the theme by name, else that of the figure that is drawn into."""
    made = None if ax is None or theme is not None else ax.get_figure(root=True)
    return theme_named(getattr(made, "theseus_theme", theme))


def new_figure(
    width: float, height: float, theme: Theme, dpi: float | None = None
) -> "Figure":
    """Make an empty figure of a size in inches, on an Agg canvas."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure, SubplotParams
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    made = Figure(
        figsize=(width, height),
        dpi=dpi or theme.dpi,
        facecolor=theme.paper,
        subplotpars=SubplotParams(0.125, 0.11, 0.9, 0.88, 0.2, 0.2),
        layout=ConstrainedLayoutEngine(
            h_pad=_PAD, w_pad=_PAD, hspace=0.02, wspace=0.02
        ),
    )
    FigureCanvasAgg(made)
    return made


def attach(made: "Figure", ax: "Axes", view: View) -> "Figure":
    """Leave the View on the axes, and on the figure while it shows that one alone."""
    ax.theseus_view = view  # type: ignore[attr-defined]
    drawn = [axes for axes in made.axes if hasattr(axes, "theseus_view")]
    made.theseus_view = view if len(drawn) == 1 else None  # type: ignore[attr-defined]
    return made


def style_axes(
    ax: "Axes", theme: Theme, *, grid: Any = "", frame: bool = False
) -> None:
    """Set the theme on axes, whatever rcParams they were made under.

    Args:
        ax: The axes.
        theme: The look.
        grid: The axis whose ticks get grid lines: "x", "y" or "".
        frame: Whether the top and right spines stay.
    """
    ax.set_facecolor(theme.paper)
    ax.minorticks_off()
    ax.grid(visible=False)
    if grid:
        ax.grid(
            visible=True,
            axis=grid,
            color=theme.rule,
            linewidth=theme.stroke,
            linestyle="-",
        )
    ax.set_axisbelow(True)
    ax.margins(0.05)
    for side, spine in ax.spines.items():
        spine.set(
            visible=frame or side in ("left", "bottom"),
            color=theme.axis,
            linewidth=theme.stroke,
        )
    ax.tick_params(
        which="both",
        direction="out",
        bottom=True,
        left=True,
        top=False,
        right=False,
        pad=3.5,
        length=3.0,
        width=theme.stroke,
        color=theme.axis,
        labelsize=theme.small,
        labelcolor=theme.ink,
        labelfontfamily=list(installed(theme.family)),
    )
    for axis in (ax.xaxis, ax.yaxis):
        # The "1e38" of large numbers.
        axis.offsetText.set(
            fontsize=theme.small,
            color=theme.ink,
            fontfamily=list(installed(theme.family)),
        )
