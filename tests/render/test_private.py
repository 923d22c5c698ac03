"""`private_pyplot`: pyplot inside, nothing of it outside."""

import subprocess
import sys
import threading
import warnings

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib import _pylab_helpers
from matplotlib.backends.backend_agg import FigureCanvasAgg

from theseus_track.render import private_pyplot
from theseus_track.render.normalise import figure_of

VALUES = np.arange(12.0).reshape(3, 4)


@pytest.fixture(autouse=True)
def user_figure():
    """A figure that the user has open, with a title, current in pyplot."""
    matplotlib.use("agg")
    figure = plt.figure(num="mine")
    figure.suptitle("mine")
    before = dict(matplotlib.rcParams)
    yield figure
    assert plt.gcf() is figure
    assert plt.get_fignums() == [figure.number]
    assert not figure.axes
    assert dict(matplotlib.rcParams) == before
    plt.close(figure)


def test_matplotlib_is_as_this_relies_on():
    # A matplotlib that moves one of these must be looked at before it is allowed.
    assert isinstance(_pylab_helpers.Gcf.figs, dict)
    assert callable(plt._get_backend_mod)
    assert callable(plt.switch_backend)
    assert issubclass(matplotlib.RcParams, dict)
    for name in ("_get", "_set", "_update_raw"):
        assert callable(getattr(matplotlib.RcParams, name))


def test_state_api_makes_an_own_agg_figure(user_figure):
    with private_pyplot():
        assert plt.get_fignums() == []
        plt.imshow(VALUES)
        plt.title("inside")
        figure = plt.gcf()
        assert figure is not user_figure
        assert type(figure.canvas) is FigureCanvasAgg
    assert figure.axes[0].get_title() == "inside"


@pytest.mark.parametrize("make", [plt.figure, lambda: plt.subplots(2, 2)[0]])
def test_figure_and_subplots_are_agg_and_numbered_from_one(make):
    with private_pyplot():
        figure = make()
        assert plt.get_fignums() == [1]
        assert type(figure.canvas) is FigureCanvasAgg
        plt.show()
        plt.draw()


@pytest.mark.slow
def test_no_backend_is_selected_by_drawing_inside():
    # Starts an interpreter.
    code = """
import threading, matplotlib
from theseus_track.render import private_pyplot
def work():
    with private_pyplot():
        import matplotlib.pyplot as plt
        plt.subplots()
        plt.figure().subplots().plot([1, 2])
        plt.show()
        plt.switch_backend("svg")
thread = threading.Thread(target=work); thread.start(); thread.join()
import matplotlib.pyplot as plt
assert plt._backend_mod is None
assert matplotlib.rcParams._get_backend_or_none() is None
assert plt.get_fignums() == []
assert type(matplotlib.rcParams) is matplotlib.RcParams
assert not hasattr(plt._get_backend_mod, "theseus_original")
"""
    env = {"PYTHONPATH": ":".join(p for p in sys.path if p), "PATH": ""}
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, env=env)


def test_seaborn_without_ax_draws_into_its_own_figure():
    seaborn = pytest.importorskip("seaborn")
    with private_pyplot():
        first = figure_of(seaborn.heatmap(VALUES))
        assert first is not None
        assert first.axes[0].collections
    with private_pyplot():
        second = figure_of(seaborn.heatmap(VALUES))
    assert first is not second


def test_settings_made_inside_are_seen_inside_alone():
    seen = {}
    inside, looked = threading.Event(), threading.Event()

    def plot():
        with private_pyplot():
            plt.rcParams["lines.linewidth"] = 7.0
            plt.style.use("dark_background")
            with plt.rc_context({"font.size": 33.0}):
                seen["inside"] = plt.rcParams["lines.linewidth"]
                inside.set()
                looked.wait(10)
            seen["after context"] = plt.rcParams["font.size"]

    size = plt.rcParams["font.size"]
    thread = threading.Thread(target=plot)
    thread.start()
    assert inside.wait(10)
    seen["outside"] = (plt.rcParams["lines.linewidth"], plt.rcParams["font.size"])
    looked.set()
    thread.join()
    assert seen == {"inside": 7.0, "outside": (1.5, size), "after context": size}


def test_settings_made_outside_meanwhile_are_kept():
    with private_pyplot():
        thread = threading.Thread(
            target=lambda: plt.rcParams.update({"lines.linewidth": 5.0})
        )
        thread.start()
        thread.join()
    assert plt.rcParams["lines.linewidth"] == 5.0
    plt.rcParams["lines.linewidth"] = 1.5


def test_an_exception_inside_closes_all_and_passes():
    def plot():
        with private_pyplot():
            plt.figure()
            raise RuntimeError("theirs")

    with pytest.raises(RuntimeError, match="theirs"):
        plot()
    assert not hasattr(plt._get_backend_mod, "theseus_original")


def test_nested_contexts_have_their_own_figures_and_inherit_settings():
    with private_pyplot():
        outer = plt.figure()
        plt.rcParams["font.size"] = 21.0
        with private_pyplot():
            assert plt.get_fignums() == []
            assert plt.rcParams["font.size"] == 21.0
            plt.figure()
        assert plt.gcf() is outer


@pytest.mark.slow
def test_user_figure_is_untouched_by_a_thread_that_plots_at_the_same_time(user_figure):
    seaborn = pytest.importorskip("seaborn")
    titles, errors = [], []

    def background(number):
        try:
            with private_pyplot():
                axes = seaborn.heatmap(VALUES, annot=True)
                plt.title(f"analysis {number}")
                plt.xlabel(r"$\theta_{1}$")
                figure = figure_of(axes)
                assert figure is not None
            titles.append((number, figure.axes[0].get_title()))
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    for round_ in range(20):
        thread = threading.Thread(target=background, args=(round_,))
        thread.start()
        plt.figure("mine")
        plt.suptitle(f"mine {round_}")
        own = plt.figure("other")
        own.subplots().set_title(f"other {round_}")
        thread.join()
        assert user_figure.get_suptitle() == f"mine {round_}"
        assert [axes.get_title() for axes in own.axes] == [f"other {round_}"]
        plt.close(own)
    assert errors == []
    assert titles == [(number, f"analysis {number}") for number in range(20)]


def test_200_figures_leave_nothing_open_and_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(200):
            with private_pyplot():
                plt.figure()
                plt.figure().suptitle(str(number))
    assert len(plt.get_fignums()) == 1
