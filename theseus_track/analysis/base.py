"""AnalysisBase: one question about a model, as a class that users write."""

import inspect
import re
from collections.abc import Iterable
from types import MappingProxyType
from typing import Any, ClassVar

from theseus_track.analysis import figures
from theseus_track.analysis.config import Configured
from theseus_track.analysis.figures.method import Helper
from theseus_track.analysis.figures.theme import theme_named
from theseus_track.capture import Target
from theseus_track.capture.edits import Edits
from theseus_track.errors import BadInput
from theseus_track.records import check_name
from theseus_track.records.narrow import NARROW

__all__ = ["AnalysisBase"]

# Values are whatever pytree the user's analyze returns.
Value = Any


class AnalysisBase(Configured):
    """One question about a model: where to look, what to compute, how to draw it.

    A subclass sets `TARGET` and writes `analyze`, and usually `select` and `plot`.
    It may also inherit from a Trainer (after AnalysisBase), which makes it a job
    of its own. The class has no fields and no constructor, so that it composes
    with any other.

    Example:
        ```python
        import flax.linen as nn
        from theseus_track.analysis import AnalysisBase

        class Norms(AnalysisBase):
            TARGET = nn.Dense

            def select(self, paths):
                return paths[0]

            def analyze(self, layer, inputs):
                return abs(inputs.output).mean(axis=0)

            def plot(self, values):
                return self.bar(y=values, xlabel="Unit", ylabel="Mean magnitude")
        ```

    Attributes:
        TARGET: Whose calls to look at: a module class, a tuple of classes, or a
            predicate on the module. `capture.Sown(name)` looks at what modules sow
            instead, `capture.Tapped(name)` at what is marked by `capture.tap`.
        NAME: What the result is called everywhere, `[A-Za-z0-9_.-]{1,80}`;
            default: the class name in snake case.
        METHODS: The methods of TARGET whose calls count.
        MAX_BYTES: The most that the value may weigh, in bytes, checked from shapes
            at trace time; more drops this analysis with a fault.
        TOGETHER: Call `analyze(layers, inputs)` once with all selected calls, as lists
            in program order, after the forward. The inputs and outputs of the calls are
            held whole until then and count against MAX_BYTES; calls in loops and
            branches are refused.
        EDITS: What is edited in a second forward from the same arguments, of which
            nothing but this analysis' values is kept: a mapping from paths (`*` and `?`
            stand for parts of names) to rules, as in `capture.edit`; or a
            `capture.Grid`, for many edits as one batch. `analyze` then runs at the
            selected calls of both, and `combine` and `plot` get {"clean": ...,
            "edited": ...}, each as it otherwise is; of a grid "edited" is a dict by the
            edited path, with the masks as the first axis of each array. Analyses with
            equal EDITS share that forward. It may be a property, to depend on `args`.
        EVERY: Run at every n-th evaluation of a Trainer, >= 1. In an own loop the
            caller decides.
        STORE_DTYPE: "float16" keeps the floats of the value in half the bytes, or in a
            quarter; `plot` gets them rounded alike, as float32. Arrays with a number
            above 65504 stay as they are.
        PLOT_NOT_TAKEN: Draw also a value whose call sits in a branch (`cond`,
            `switch`, a loop that never ran) that was not taken: it is zeros there.
            By default it is kept and not drawn, and the record says why. `plot` then
            gets `taken` too: by path of each call a bool array, which has the axes
            of the loops around the branch.
        UNORDERED: Names of axes whose order means nothing across seeds ("head").
        THEME: The look of figures: "light", "dark", "serif" or "serif-dark".
        KEY: The registry key; set by `@analysis(key)`.
    """

    TARGET: ClassVar[Target]
    NAME: ClassVar[str]
    METHODS: ClassVar[tuple[str, ...]] = ("__call__",)
    MAX_BYTES: ClassVar[int] = 1 << 20
    TOGETHER: ClassVar[bool] = False
    EDITS: ClassVar[Edits] = MappingProxyType({})
    EVERY: ClassVar[int] = 1
    STORE_DTYPE: ClassVar[str | None] = None
    PLOT_NOT_TAKEN: ClassVar[bool] = False
    UNORDERED: ClassVar[tuple[str, ...]] = ()
    THEME: ClassVar[str] = "light"
    KEY: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "NAME" not in vars(cls):
            cls.NAME = _snake(cls.__name__)
        check_name(cls.NAME)
        _check_every(cls)
        if cls.STORE_DTYPE not in (None, NARROW):
            raise BadInput(
                f"{cls.__name__}.STORE_DTYPE is {cls.STORE_DTYPE!r}; allowed: None and "
                f"{NARROW!r}."
            )
        theme_named(cls.THEME)
        # The key belongs to the class that was registered, not to its subclasses.
        if "KEY" not in vars(cls):
            cls.KEY = f"{cls.__module__}.{cls.__qualname__}"
        _check_base_order(cls)
        _check_plot(cls)

    def select(self, paths: list[str]) -> str | Iterable[str]:
        """Choose among the discovered calls of TARGET; called at trace time.

        Args:
            paths: Such as "blocks_0/attn", in program order; never empty. The layers
                of a scanned stack are one path, "blocks/attn".

        Returns:
            One path, or several (any iterable). The default is the first. Of a
            scanned stack "blocks/attn" gives all layers, on a leading axis;
            "blocks[3]/attn" one layer and "blocks[2:5]/attn" three of them, at the
            price of those.
        """
        return paths[0]

    def analyze(self, layer: Any, inputs: Any) -> Value:
        """Compute the value at one call; runs under jit, once per selected call.

        With `TOGETHER` it runs once, after the forward: `layer` and `inputs` are then
        lists, with an entry for each selected call.

        Args:
            layer: The module, bound to its parameters, on an isolated view: calling
                it disturbs neither the random streams nor the state of the run.
            inputs: The call's arguments by name, as attributes and as a mapping,
                defaults applied; `inputs.output` is what the layer returned.

        Returns:
            A pytree (dicts, lists, tuples) of arrays, on device. Nothing in here
            may call the host.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no analyze(self, layer, inputs). Write one "
            "that returns an array or a pytree of arrays."
        )

    def plot(self, values: Value) -> object:  # noqa: ARG002 (an overridable default)
        """Draw the value; runs on rank 0, on the host, never on the training thread.

        Args:
            values: What `analyze` returned, as numpy arrays; with several paths a
                dict path -> value. Small floats (bfloat16, float8) arrive as float32.

        Returns:
            A Matplotlib Figure (or an Axes or seaborn grid, whose figure is taken),
            a JSON value, a mapping of part names to either, or None. The default
            draws nothing: only the values are kept.
        """
        return None

    heatmap = Helper(figures.heatmap)
    bar = Helper(figures.bar)
    line = Helper(figures.line)
    scatter = Helper(figures.scatter)
    histogram = Helper(figures.histogram)
    image_grid = Helper(figures.image_grid)
    token_strip = Helper(figures.token_strip)
    grid = Helper(figures.grid)
    figure = Helper(figures.figure)


def _snake(name: str) -> str:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return spaced.lower()


def _check_every(cls: type[AnalysisBase]) -> None:
    every = cls.EVERY
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise BadInput(
            f"{cls.__name__}.EVERY is {every!r}: give an integer >= 1, every how many "
            "evaluations it runs."
        )


def _check_plot(cls: type[AnalysisBase]) -> None:
    """Refuse PLOT_NOT_TAKEN beside a `plot` that cannot be told what was taken."""
    if not cls.PLOT_NOT_TAKEN:
        return
    known = inspect.signature(cls.plot).parameters
    if "taken" not in known and all(p.kind != p.VAR_KEYWORD for p in known.values()):
        raise BadInput(
            f"{cls.__name__} sets PLOT_NOT_TAKEN, but its plot({', '.join(known)}) "
            "does not take what was taken. Write `def plot(self, values, taken)`."
        )


def _check_base_order(cls: type) -> None:
    """Refuse `class X(Trainer, AnalysisBase)`, where the Trainer would hide plot."""
    for base in cls.__mro__[: cls.__mro__.index(AnalysisBase)]:
        # The marker is the Trainer's own; plain mixins may come first.
        marked = vars(base).get("THESEUS_TRAINER", False)
        if marked and not issubclass(base, AnalysisBase):
            raise TypeError(
                f"class {cls.__name__} lists {base.__name__} before AnalysisBase. "
                f"Write `class {cls.__name__}(AnalysisBase, {base.__name__})`."
            )
