"""The helpers have seaborn's signatures, and refuse what they cannot honour."""

import inspect
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from theseus_track.analysis import figures
from theseus_track.errors import BadInput

PAIRS = [
    ("heatmap", "heatmap"),
    ("bar", "barplot"),
    ("line", "lineplot"),
    ("scatter", "scatterplot"),
]
OWN = ["title", "xlabel", "ylabel", "theme"]


def shape(parameter):
    # Seaborn marks a deprecated default with an object of its own, printed so.
    return parameter.name, parameter.kind, repr(parameter.default)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_parameters_kinds_and_defaults_are_those_of_seaborn(ours, theirs):
    seaborn = pytest.importorskip("seaborn")
    expected = [
        shape(parameter)
        for parameter in inspect.signature(getattr(seaborn, theirs)).parameters.values()
    ]
    found = [
        parameter
        for parameter in inspect.signature(getattr(figures, ours)).parameters.values()
        if parameter.name not in OWN
    ]
    assert [shape(parameter) for parameter in found] == expected


@pytest.mark.parametrize("name", [ours for ours, _ in PAIRS])
def test_title_and_labels_are_keywords_and_none(name):
    parameters = inspect.signature(getattr(figures, name)).parameters
    for own in OWN:
        assert parameters[own].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[own].default is None


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        ("heatmap", "edgecolors", "k"),
        ("heatmap", "shading", "flat"),
        ("heatmap", "norm", object()),
        ("heatmap", "cmap", "no such map"),
        ("heatmap", "xticklabels", ["a"]),
        ("heatmap", "mask", np.zeros((1, 1))),
        ("bar", "units", [1, 2]),
        ("bar", "weights", [1, 2]),
        ("bar", "ci", 95),
        ("bar", "errcolor", "k"),
        ("bar", "errwidth", 1),
        ("bar", "orient", "z"),
        ("bar", "dodge", "maybe"),
        ("bar", "estimator", "mode"),
        ("bar", "errorbar", "xx"),
        ("bar", "hue_order", ["a"]),
        ("bar", "hue_norm", (0, 1)),
        ("bar", "snap", True),
        ("line", "weights", [1, 2]),
        ("line", "units", [1, 2]),
        ("line", "ci", 95),
        ("line", "err_style", "dots"),
        ("line", "orient", "z"),
        ("line", "size_order", [1]),
        ("line", "drawstyle", "steps"),
        ("scatter", "style_order", ["a"]),
        ("scatter", "plotnonfinite", True),
        ("scatter", "legend", "some"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(name, parameter, value):
    data = {"data": np.eye(2)} if name == "heatmap" else {"x": [1, 2], "y": [3, 4]}
    with pytest.raises(BadInput, match=parameter):
        getattr(figures, name)(**data, **{parameter: value})


SCATTERED = np.random.default_rng(0)
LONG = {
    "x": np.tile([1.0, 2.0, 3.0, 4.0], 6),
    "y": SCATTERED.normal(size=24) + 3.0,
    "kind": np.repeat(["a", "b"], 12),
    "size": np.tile([1.0, 2.0, 5.0], 8),
}
GRID = SCATTERED.normal(size=(6, 6))
BASE: dict[str, dict[str, Any]] = {
    "heatmap": {"data": GRID},
    "bar": {"data": LONG, "x": "x", "y": "y", "hue": "kind", "seed": 0},
    "line": {
        "data": LONG, "x": "x", "y": "y", "hue": "kind", "style": "kind",
        "size": "kind", "seed": 0,
    },
    "scatter": {
        "data": LONG, "x": "x", "y": "y", "hue": "kind", "style": "kind",
        "size": "size",
    },
}  # fmt: skip
"""Calls in which every parameter has something to act on."""
VALUES: dict[str, dict[str, Any]] = {
    "heatmap": {
        "data": GRID.T, "vmin": -5, "vmax": 5, "cmap": "magma", "center": 1.0,
        "robust": True, "annot": True, "fmt": (".1f", {"annot": True}),
        "annot_kws": ({"fontsize": 3}, {"annot": True}), "linewidths": 2,
        "linecolor": ("red", {"linewidths": 2}), "cbar": False,
        "cbar_kws": {"label": "x"}, "square": (True, {"data": GRID[:3]}),
        "xticklabels": 2, "yticklabels": False, "mask": GRID > 1,
    },
    "bar": {
        "data": {**LONG, "y": LONG["x"]}, "x": "kind", "y": "size", "hue": None,
        "order": [2.0, 1.0], "hue_order": ["b", "a"], "estimator": "max",
        "errorbar": "sd", "n_boot": 50, "seed": (5, {"n_boot": 5}), "orient": "y",
        "color": ("red", {"hue": None}), "palette": "Set2", "saturation": 0.1,
        "fill": False, "hue_norm": ((0, 9), {"hue": "size"}), "width": 0.3,
        "dodge": False, "gap": 0.5, "log_scale": True, "native_scale": True,
        "formatter": "n{}".format, "legend": False, "capsize": 0.5,
        "err_kws": {"linewidth": 4},
    },
    "line": {
        "data": {**LONG, "y": LONG["x"]}, "x": "size", "y": "size", "hue": None,
        "size": None, "style": None, "units": ("size", {"estimator": None}),
        "palette": "Set2", "hue_order": ["b", "a"],
        "hue_norm": ((0, 9), {"hue": "size"}), "sizes": (1, 9),
        "size_order": ["b", "a"], "size_norm": ((0, 9), {"size": "size"}),
        "dashes": False, "markers": True, "style_order": ["b", "a"],
        "estimator": "max", "errorbar": "sd", "n_boot": 50, "seed": (5, {"n_boot": 5}),
        "orient": "y", "sort": (False, {"estimator": None}), "err_style": "bars",
        "err_kws": {"alpha": 0.9}, "legend": False,
    },
    "scatter": {
        "data": {**LONG, "y": LONG["x"]}, "x": "size", "y": "size", "hue": None,
        "size": None, "style": None, "palette": "Set2", "hue_order": ["b", "a"],
        "hue_norm": ((0, 9), {"hue": "size"}), "sizes": (1, 9),
        "size_order": [5.0, 1.0], "size_norm": (0, 9), "markers": False,
        "style_order": ["b", "a"], "legend": False,
    },
}  # fmt: skip
"""Parameter -> a value that is not the default; (value, more) with other parameters."""
REFUSED = {"ci", "errcolor", "errwidth", "units", "weights"}


def drawn(name, **arguments):
    made = getattr(figures, name)(**arguments)
    made.set_dpi(50)
    # What is compared is what is drawn, not where the layout puts it.
    made.set_layout_engine("none")
    made.canvas.draw()
    return np.asarray(made.canvas.buffer_rgba()).copy()


def same(one, other):
    return one.shape == other.shape and bool((one == other).all())


@pytest.mark.parametrize(
    ("name", "parameter"),
    [(name, parameter) for name, values in VALUES.items() for parameter in values],
)
def test_every_parameter_of_seaborn_changes_the_figure(name, parameter):
    value, more = VALUES[name][parameter], {}
    if isinstance(value, tuple) and isinstance(value[1], dict):
        value, more = value
    before = {**BASE[name], **more}
    assert not same(drawn(name, **before), drawn(name, **{**before, parameter: value}))


@pytest.mark.parametrize("name", [ours for ours, _ in PAIRS])
def test_no_parameter_of_seaborn_is_left_untested(name):
    parameters = inspect.signature(getattr(figures, name)).parameters
    # Axes to draw into are tested beside the figures that they belong to.
    tested = {*VALUES[name], *REFUSED, *OWN, "ax", "cbar_ax", "kwargs"}
    assert set(parameters) <= tested


@pytest.mark.slow
def test_helpers_import_neither_pyplot_nor_seaborn_nor_pandas():
    # Starts an interpreter that imports JAX.
    code = """
import sys
import numpy as np
from theseus_track.analysis import figures
assert "matplotlib" not in sys.modules
figures.heatmap(np.eye(3)); figures.bar([1, 2]); figures.line([1, 2])
figures.scatter(x=[1], y=[2]); figures.figure(2, 2)
print(sorted({"matplotlib.pyplot", "seaborn", "pandas"} & set(sys.modules)))
"""
    env = {"PYTHONPATH": ":".join(filter(None, sys.path)), "JAX_PLATFORMS": "cpu"}
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=env,
    )
    assert ran.stdout.strip() == "[]"
