"""The helpers have seaborn's signatures, and refuse what they cannot honour."""

import inspect
import subprocess
import sys

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
OWN = ["title", "xlabel", "ylabel"]


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
