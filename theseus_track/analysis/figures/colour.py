"""Choose colours from the data: the map, the range and the colours of groups."""

import colorsys
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from theseus_track.analysis.figures.theme import Theme
from theseus_track.errors import BadInput

if TYPE_CHECKING:
    from matplotlib.colors import Colormap

__all__ = [
    "color_scale",
    "colormap",
    "colormap_name",
    "desaturated",
    "group_colors",
    "ink_on",
    "norm_name",
]

_SEABORN_MAPS = ("rocket", "mako", "icefire", "vlag", "flare", "crest")
_SAMPLES = 256
_ROBUST = (2.0, 98.0)


def color_scale(
    values: np.ndarray,
    theme: Theme,
    *,
    vmin: float | None,
    vmax: float | None,
    center: float | None,
    robust: bool,
    cmap: object,
    norm: Any,
) -> dict[str, Any]:
    """Choose a colormap and its range.

    Args:
        values: The numbers that are drawn, any shape; only finite ones count.
        theme: Whose colormaps are taken when `cmap` is None.
        vmin: Lower end, or None to choose.
        vmax: Upper end, or None to choose.
        center: The value of the colormap's middle, or None to choose: 0 when there
            are values of both signs and the rest is left open.
        robust: Take the 2nd and 98th percentile instead of the extremes.
        cmap: A colormap, its name, a list of colours, or None.
        norm: None, "linear", "log", or such a matplotlib Normalize.

    Returns:
        `vmin`, `vmax`, `center` (or None), `cmap` (a name or a list of hex colours),
        `norm` ("linear" or "log"), and `extend`: on which sides values lie beyond
        the range ("neither", "min", "max" or "both").
    """
    kind, low, high = norm_name(norm)
    low, high = (low if vmin is None else vmin), (high if vmax is None else vmax)
    finite = values[np.isfinite(values)]
    if kind == "log":
        finite = finite[finite > 0]
    bottom, top = _range(finite, robust=robust)
    if center is None and kind == "linear" and cmap is None and bottom < 0 < top:
        if low is None and high is None:
            bottom, top = -max(-bottom, top), max(-bottom, top)
        center = 0.0
    bottom = bottom if low is None else float(low)
    top = top if high is None else float(high)
    if bottom > top:
        raise BadInput(f"vmin={bottom:g} is above vmax={top:g}. Exchange them.")
    if kind == "log" and bottom <= 0:
        raise BadInput(f"A log scale begins above 0, not at vmin={bottom:g}.")
    fallback = theme.sequential if center is None else theme.diverging
    return {
        "vmin": bottom,
        "vmax": top,
        "center": None if center is None else float(center),
        "cmap": colormap_name(fallback if cmap is None else cmap),
        "norm": kind,
        "extend": _extend(finite, bottom, top),
    }


def norm_name(norm: Any) -> tuple[str, float | None, float | None]:
    """Return the name of a scale, "linear" or "log", and the limits that it brings."""
    if norm is None or norm in ("linear", "log"):
        return str(norm or "linear"), None, None
    module = sys.modules.get("matplotlib.colors")
    if module is not None:
        for name, cls in (("linear", module.Normalize), ("log", module.LogNorm)):
            if type(norm) is cls:
                return name, norm.vmin, norm.vmax
    raise BadInput(
        f"norm={norm!r:.80} is not supported; use None, 'linear', 'log', Normalize or "
        "LogNorm, or transform the values before drawing them."
    )


def colormap_name(cmap: object) -> str | list[str]:
    """Return the name of a known colormap, or the hex colours of another."""
    import matplotlib
    from matplotlib.colors import Colormap, to_hex

    if isinstance(cmap, str):
        _load_seaborn_maps(cmap)
        if cmap in matplotlib.colormaps:
            return cmap
        raise BadInput(
            f"cmap={cmap!r} is no colormap that matplotlib or seaborn knows. Use a "
            "name such as 'viridis', 'magma' or 'RdBu_r', or a list of colours."
        )
    if isinstance(cmap, Colormap):
        known = cmap.name in matplotlib.colormaps
        if known and matplotlib.colormaps[cmap.name] == cmap:
            return cmap.name
        return [to_hex(color) for color in cmap(np.linspace(0.0, 1.0, _SAMPLES))]
    if isinstance(cmap, Sequence):
        return [to_hex(color) for color in cmap]
    raise BadInput(
        f"cmap={cmap!r:.80} is no colormap: pass a name or a list of colours."
    )


def colormap(scale: Mapping[str, Any]) -> "Colormap":
    """Build the colormap of a scale, trimmed so that its middle is at `center`.

    A range that is not symmetric about the centre uses less of one end, so that
    equal distances from the centre are equally strong (as in seaborn).
    """
    import matplotlib
    from matplotlib.colors import ListedColormap

    name = scale["cmap"]
    if isinstance(name, str):
        _load_seaborn_maps(name)
        base: Colormap = matplotlib.colormaps[name]
    else:
        base = ListedColormap(name)
    vmin, vmax, center = scale["vmin"], scale["vmax"], scale["center"]
    if center is None or vmin == vmax:
        return base
    reach = max(abs(vmax - center), abs(center - vmin))
    low, high = (0.5 + 0.5 * (end - center) / reach for end in (vmin, vmax))
    if (low, high) == (0.0, 1.0):
        return base
    return ListedColormap(base(np.linspace(low, high, _SAMPLES)))


def group_colors(
    levels: Sequence[Any],
    theme: Theme,
    *,
    palette: object,
    numeric: bool,
    hue_norm: object,
) -> list[str]:
    """Return a hex colour per group.

    Args:
        levels: The groups, in their order.
        theme: Whose palette is taken when `palette` is None.
        palette: A name (matplotlib's or seaborn's), a list, a dict level -> colour,
            or None.
        numeric: Whether the levels are numbers, coloured along a colormap.
        hue_norm: None or the (lowest, highest) number of that colormap.
    """
    from matplotlib.colors import to_hex

    if isinstance(palette, Mapping):
        missing = [level for level in levels if level not in palette]
        if missing:
            raise BadInput(
                f"palette has no colour for {missing[0]!r}; it has "
                f"{', '.join(map(repr, list(palette)[:10]))}. Add it."
            )
        return [to_hex(palette[level]) for level in levels]
    if isinstance(palette, Sequence) and not isinstance(palette, str):
        if len(palette) < len(levels):
            raise BadInput(
                f"palette has {len(palette)} colours for {len(levels)} groups "
                f"({', '.join(map(repr, levels[:10]))}). Give one for each."
            )
        return [to_hex(color) for color in palette[: len(levels)]]
    if numeric:
        return _along_map(np.asarray(levels, np.float64), palette, hue_norm)
    if hue_norm is not None:
        raise BadInput("hue_norm needs numbers as hue; these are categories. Drop it.")
    if palette is None and len(levels) <= len(theme.palette):
        return list(theme.palette[: len(levels)])
    return _named_palette("viridis" if palette is None else palette, len(levels))


def desaturated(color: str, saturation: float) -> str:
    """Return a colour with its HLS saturation scaled, as seaborn fills bars."""
    from matplotlib.colors import to_hex, to_rgb

    hue, lightness, strength = colorsys.rgb_to_hls(*to_rgb(color))
    return to_hex(colorsys.hls_to_rgb(hue, lightness, strength * saturation))


def ink_on(color: Any) -> str:
    """Return black or white, whichever is read better on an RGB colour (WCAG 2)."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color
    ]
    luminance = float(np.dot(linear[:3], [0.2126, 0.7152, 0.0722]))
    return "#1a1a1a" if luminance > 0.25 else "#ffffff"


def _range(finite: np.ndarray, *, robust: bool) -> tuple[float, float]:
    if finite.size == 0:
        return (1.0, 10.0)
    if robust:
        low, high = np.percentile(finite, _ROBUST)
        return float(low), float(high)
    return float(finite.min()), float(finite.max())


def _extend(finite: np.ndarray, low: float, high: float) -> str:
    below, above = bool((finite < low).any()), bool((finite > high).any())
    if below and above:
        return "both"
    return "min" if below else "max" if above else "neither"


def _along_map(levels: np.ndarray, palette: object, hue_norm: object) -> list[str]:
    from matplotlib.colors import Normalize, to_hex

    name = colormap_name("viridis" if palette is None else palette)
    base = colormap({"cmap": name, "vmin": 0.0, "vmax": 1.0, "center": None})
    if hue_norm is None:
        norm = Normalize(levels.min(), levels.max()) if levels.size else Normalize(0, 1)
    elif isinstance(hue_norm, Normalize):
        norm = hue_norm
    elif isinstance(hue_norm, tuple) and len(hue_norm) == 2:
        norm = Normalize(*hue_norm, clip=True)
    else:
        raise BadInput(f"hue_norm={hue_norm!r:.80} must be a pair (lowest, highest).")
    return [to_hex(base(float(norm(level)))) for level in levels]


def _named_palette(palette: object, count: int) -> list[str]:
    import matplotlib
    from matplotlib.colors import ListedColormap, to_hex

    if isinstance(palette, str) and palette not in matplotlib.colormaps:
        return _seaborn_palette(palette, count)
    name = colormap_name(palette)
    base = colormap({"cmap": name, "vmin": 0.0, "vmax": 1.0, "center": None})
    if isinstance(base, ListedColormap) and base.N < _SAMPLES:
        return [to_hex(base(index % base.N)) for index in range(count)]
    return [to_hex(base((index + 1) / (count + 1))) for index in range(count)]


def _seaborn_palette(palette: str, count: int) -> list[str]:
    import seaborn
    from matplotlib.colors import to_hex

    try:
        return [to_hex(color) for color in seaborn.color_palette(palette, count)]
    except ValueError as error:
        raise BadInput(
            f"palette={palette!r} is no palette that matplotlib or seaborn knows: "
            f"{error}. Use a name such as 'tab10', a list of colours or a dict."
        ) from error


def _load_seaborn_maps(name: str) -> None:
    """Register seaborn's own colormaps, once one of them is asked for."""
    if name.removesuffix("_r") in _SEABORN_MAPS:
        import seaborn  # noqa: F401 (importing it registers them)
