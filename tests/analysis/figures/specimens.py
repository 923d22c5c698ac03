"""One figure of every helper and of every difficult value, by name.

The visual regression suite compares them with stored images; `make figures` draws
them for people.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from theseus_track.analysis import figures

__all__ = ["DIFFICULT", "SPECIMENS", "TOKENS"]

Specimen = Callable[..., Any]

TEXT = (
    "The| theory| that| the| moon| was| made| of| cheese|,| which| nobody| tested|"
    " before| 1969|,| was|\n|given| up| when| the| first| sample| ($|a|_b$|)| arrived|."
)
WORDS = ("the", "cat", "sat", "on", "the", "mat", "and", "then", "it", "looked", "up")
TOKENS = ["$", "$x", "a_b$^", r"\frac$ $", "\n", "\ud800", "日本", "🙂", "\0", "▁the"]


def _random() -> np.random.Generator:
    return np.random.default_rng(7)


def _attention() -> np.ndarray:
    """Return [head, query, key]: rows sum to 1, -inf above the diagonal."""
    random, size = _random(), 24
    scores = (
        random.normal(size=(6, size, size)) * np.arange(0.5, 3.5, 0.5)[:, None, None]
    )
    near = -0.15 * np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    allowed = np.tril(np.ones((size, size), bool))
    raised = np.where(allowed, np.exp(scores + near), 0.0)
    weights = raised / raised.sum(-1, keepdims=True)
    return np.where(allowed, weights, -np.inf)


def _curves(count: int = 3, points: int = 60) -> dict[str, np.ndarray]:
    random = _random()
    steps = np.arange(points) / points
    names = ("embed", "blocks_0/attn", "blocks_0/mlp", "blocks_1/attn", "blocks_1/mlp")
    return {
        name: (3 + index) * np.exp(-3 * steps) + 0.6 * index
        + 0.08 * random.normal(size=points)
        for index, name in enumerate(names[:count])
    }  # fmt: skip


def _clusters() -> dict[str, Any]:
    random = _random()
    kinds = np.repeat(["noun", "verb", "adjective"], 40)
    centres = {"noun": (-1.5, 0.5), "verb": (1.2, 1.4), "adjective": (0.4, -1.3)}
    points = np.array([centres[k] for k in kinds]) + 0.55 * random.normal(size=(120, 2))
    return {"PC 1": points[:, 0], "PC 2": points[:, 1], "kind": kinds.tolist()}


def _filters() -> np.ndarray:
    random = _random()
    grid = np.linspace(-1, 1, 9)
    x, y = np.meshgrid(grid, grid)
    angles, phases = random.uniform(0, np.pi, 16), random.uniform(0, 6, 16)
    return np.stack([
        np.cos(5 * (x * np.cos(a) + y * np.sin(a)) + p) * np.exp(-2 * (x**2 + y**2))
        for a, p in zip(angles, phases, strict=True)
    ])  # fmt: skip


def _photos() -> np.ndarray:
    x, y = np.meshgrid(np.linspace(0, 1, 32), np.linspace(0, 1, 32))
    return np.stack([
        np.stack([x, y, 0.5 + 0.5 * np.sin(6 * (x + i * y))], axis=-1) for i in range(6)
    ])  # fmt: skip


def _tokens() -> tuple[np.ndarray, list[str]]:
    tokens = TEXT.split("|")
    return np.round(_random().normal(size=len(tokens)), 2), tokens


def _repeated() -> dict[str, Any]:
    random = _random()
    place = np.tile(["q", "k", "v", "out"], 12)
    kind = np.repeat(["early", "late"], 24)
    base = np.array([1.0, 1.4, 0.7, 2.1])[np.tile(np.arange(4), 12)]
    value = base + 0.5 * (kind == "late") + 0.2 * random.normal(size=48)
    return {"Projection": place, "Norm": value, "layer": kind.tolist()}


def _heatmap_signed(**look: Any) -> Any:
    random = _random()
    values = random.normal(size=(48, 96)) * np.linspace(0.3, 1.6, 96)
    values[:, 60] += 3.0
    return figures.heatmap(
        values, title="Residual stream after block 3", xlabel="Feature",
        ylabel="Token", **look,
    )  # fmt: skip


def _heatmap_labels(**look: Any) -> Any:
    values = _attention()[2, :22, :22]
    words = [*WORDS, *WORDS]
    return figures.heatmap(
        values, xticklabels=words, yticklabels=words, square=True,
        title="Attention of head 2", xlabel="Key", ylabel="Query", **look,
    )  # fmt: skip


def _heatmap_annotated(**look: Any) -> Any:
    values = np.corrcoef(_random().normal(size=(6, 12)))
    names = [f"layer {index}" for index in range(6)]
    return figures.heatmap(
        values, annot=True, fmt=".2f", square=True, linewidths=1,
        xticklabels=names, yticklabels=names, title="Similarity of layers", **look,
    )  # fmt: skip


def _heatmap_panels(**look: Any) -> Any:
    return figures.heatmap(
        _attention(), xlabel="Key", ylabel="Query",
        title="Attention of the last block, one panel for each head", **look,
    )  # fmt: skip


def _bar_errors(**look: Any) -> Any:
    return figures.bar(
        _repeated(), x="Projection", y="Norm", hue="layer", errorbar="sd", capsize=0.3,
        title="Norm of each projection", **look,
    )  # fmt: skip


def _bar_values(**look: Any) -> Any:
    names = [f"blocks_{i}/{part}" for i in range(3) for part in ("attn", "mlp")]
    return figures.bar(
        x=[0.42, 1.31, 0.58, 1.07, 0.61, 0.93], y=names, xlabel="Mean |output|",
        title="What each module adds", **look,
    )  # fmt: skip


def _line(**look: Any) -> Any:
    return figures.line(
        _curves(), xlabel="Step", ylabel="Norm", title="Norm of the output", **look
    )


def _line_band(**look: Any) -> Any:
    random = _random()
    steps = np.tile(np.arange(20), 10)
    loss = 3 * np.exp(-steps / 8) + 0.3 * random.normal(size=200) + 1
    return figures.line(
        x=steps, y=loss, errorbar="sd", xlabel="Step", ylabel="Loss",
        title=r"Loss of ten seeds, $\mathcal{L} = -\log p_\theta(x)$", **look,
    )  # fmt: skip


def _scatter(**look: Any) -> Any:
    return figures.scatter(
        _clusters(), x="PC 1", y="PC 2", hue="kind", style="kind",
        title="Tokens by part of speech", **look,
    )  # fmt: skip


def _histogram(**look: Any) -> Any:
    values = _random().standard_t(3, size=4000)
    return figures.histogram(
        values, log=True, xlabel="Weight", title="Weights of the embedding", **look
    )


def _histograms(**look: Any) -> Any:
    random = _random()
    series = {f"block {i}": random.normal(i, 0.6 + 0.3 * i, 2000) for i in range(3)}
    return figures.histogram(
        series, stat="density", xlabel="Activation", title="Activations by block",
        **look,
    )  # fmt: skip


def _token_strip(**look: Any) -> Any:
    values, tokens = _tokens()
    return figures.token_strip(
        values, tokens, title="How much each token changes the answer", **look
    )


def _image_grid(**look: Any) -> Any:
    return figures.image_grid(_filters(), title="Filters of the first layer", **look)


def _image_colors(**look: Any) -> Any:
    names = [f"class {index}" for index in range(6)]
    return figures.image_grid(_photos(), titles=names, title="Samples", **look)


def _grid_lines(**look: Any) -> Any:
    curves = _curves(5)
    panels = {
        name: {"weight": c, "update": 0.3 * c[::-1]} for name, c in curves.items()
    }
    return figures.grid(
        "line", panels, title="Norms by module", xlabel="Step", ylabel="Norm", **look
    )


def _grid_histograms(**look: Any) -> Any:
    random = _random()
    panels = {f"blocks_{i}/mlp": random.normal(0, 1 + i / 2, 800) for i in range(4)}
    return figures.grid("histogram", panels, xlabel="Activation", cols=2, **look)


def _grid_heatmaps(**look: Any) -> Any:
    random = _random()
    panels = {name: random.normal(size=(8, n)) for name, n in (("q", 8), ("mlp", 20))}
    return figures.grid(
        "heatmap", panels, title="Weights of two shapes on one scale",
        xlabel="In", ylabel="Out", **look,
    )  # fmt: skip


SPECIMENS: dict[str, Specimen] = {
    "heatmap_signed": _heatmap_signed,
    "heatmap_labels": _heatmap_labels,
    "heatmap_annotated": _heatmap_annotated,
    "heatmap_panels": _heatmap_panels,
    "bar_errors": _bar_errors,
    "bar_values": _bar_values,
    "line": _line,
    "line_band": _line_band,
    "scatter": _scatter,
    "histogram": _histogram,
    "histograms": _histograms,
    "token_strip": _token_strip,
    "image_grid": _image_grid,
    "image_colors": _image_colors,
    "grid_lines": _grid_lines,
    "grid_histograms": _grid_histograms,
    "grid_heatmaps": _grid_heatmaps,
}
"""Name -> function of `theme=` that returns the figure."""


def _faults() -> np.ndarray:
    values = _random().normal(size=(12, 24))
    values[2, 3:6], values[5, 10], values[8, 15:] = np.nan, np.inf, -np.inf
    return values


DIFFICULT: dict[str, Specimen] = {
    "faults": functools.partial(figures.heatmap, _faults(), title="Not finite"),
    "all_nan": functools.partial(figures.heatmap, np.full((4, 8), np.nan), title="NaN"),
    "constant": functools.partial(figures.heatmap, np.zeros((4, 6)), title="Constant"),
    "huge": functools.partial(
        figures.heatmap, np.array([[3e38, -3e38, 1e30], [0, 1, 2]]), title="3e38"
    ),
    "one_row": functools.partial(
        figures.heatmap, _random().normal(size=(1, 5000)), title="One row of 5,000"
    ),
    "vector": functools.partial(figures.heatmap, np.arange(12.0), title="A vector"),
    "number": functools.partial(figures.heatmap, 0.6931, title="A number"),
    "empty": functools.partial(figures.heatmap, np.zeros((0, 5)), title="Empty"),
    "tokens": functools.partial(
        figures.heatmap, _random().random((4, 10)), xticklabels=TOKENS,
        title=r"Labels that are literal: $5 to $6, \frac$ $, 日本",
    ),
    "long_title": functools.partial(
        figures.heatmap, _random().random((8, 8)),
        title="A title of many words, which is wrapped, then set smaller, and only cut "
        "when even that does not give it enough room above the axes",
        ylabel="A label beside the axes that is much longer than they are",
    ),
    "many_rows": functools.partial(
        figures.heatmap, _random().normal(size=(60_000, 16)), title="60,000 rows"
    ),
    "token_faults": functools.partial(
        figures.token_strip, [np.nan, np.inf, -np.inf, *range(7)], TOKENS
    ),
    "no_points": functools.partial(figures.line, [], title="No points"),
    "gap": functools.partial(figures.line, [1.0, 2.0, np.nan, 1.5, np.inf, 2.5, 2.0]),
    "one_bar": functools.partial(figures.bar, [3.0], title="One bar"),
    "many_bars": functools.partial(
        figures.bar, x=[f"feature {i}" for i in range(90)],
        y=np.abs(_random().normal(size=90)),
    ),
}  # fmt: skip
"""Name -> function of `theme=`, for values that other libraries stumble over."""
