"""instrument: an eval step -> the same step that also returns Values."""

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax

from theseus_track.analysis.base import AnalysisBase
from theseus_track.analysis.check import Check, make_check
from theseus_track.analysis.collect import collect
from theseus_track.analysis.plan import Plan, make_plan
from theseus_track.analysis.sites import sites_of
from theseus_track.analysis.values import Values
from theseus_track.capture import watch
from theseus_track.capture.program import opened
from theseus_track.errors import BadInput, describe_unknown

__all__ = ["Instrumented", "instrument", "is_off"]


def is_off() -> bool:
    """Say whether `THESEUS_TRACK=off` switches every analysis off."""
    return os.environ.get("THESEUS_TRACK", "").strip().lower() in ("off", "0", "false")


def instrument(
    fn: Callable[..., Any],
    analyses: Iterable[type[AnalysisBase] | AnalysisBase],
    *,
    only: Iterable[str] | None = None,
    strict: bool = False,
    mesh: jax.sharding.Mesh | None = None,
) -> "Instrumented":
    """Make an eval step also return what the analyses compute, in one forward pass.

    Args:
        fn: A pure function, plain or jitted by `jax.jit` or `nnx.jit`. Its signature,
            static and keyword arguments, donation and shardings are kept; its result
            may hold anything, strings and mutated collections included. NNX modules,
            metrics and random streams among its arguments change as under `nnx.jit`.
        analyses: AnalysisBase classes or instances. A class is instantiated here,
            once, without arguments; a Trainer among its bases builds nothing.
        only: NAMEs to run, or None for all; the others cost nothing.
        strict: Raise the first fault of an analysis at trace time. By default a
            fault drops that analysis alone, and `run.log` reports it.
        mesh: What the values are replicated on where neither the arguments nor the
            context tell a mesh.

    Returns:
        A callable with fn's signature that returns `(fn's whole result, Values)`,
        jitted if fn was jitted. With `THESEUS_TRACK=off` in the environment it
        calls fn untouched and returns empty Values.

    Raises:
        BadInput: When fn is instrumented already, an item is no analysis, two
            analyses share a NAME, or `only` names an unknown one.

    Example:
        ```python
        import jax, jax.numpy as jnp, flax.linen as nn
        from theseus_track.analysis import AnalysisBase, instrument

        class Features(AnalysisBase):
            TARGET = nn.Dense

            def analyze(self, layer, inputs):
                return inputs.output

        model = nn.Dense(2)
        x = jnp.ones((1, 3))
        variables = model.init(jax.random.key(0), x)
        step = instrument(jax.jit(model.apply), [Features])
        print(step.plan(variables, x))
        logits, values = step(variables, x)
        ```
    """
    if _already(fn):
        raise BadInput(
            f"{getattr(fn, '__name__', fn)!r} is instrumented already. Give all "
            "analyses to one instrument(fn, [A, B, ...])."
        )
    made = _by_name(analyses)
    if only is not None:
        made = _keep(made, only)
    return Instrumented(fn, made, strict=strict, mesh=mesh)


class Instrumented:
    """An eval step that also returns Values; made by `instrument`.

    Attributes:
        analyses: NAME -> instance, in the order that they were given.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        analyses: Mapping[str, AnalysisBase],
        *,
        strict: bool,
        mesh: jax.sharding.Mesh | None,
    ) -> None:
        functools.update_wrapper(self, fn, updated=())
        self.analyses = dict(analyses)
        self._fn = fn
        self._strict = strict
        self._mesh = mesh
        finish = functools.partial(collect, analyses=self.analyses)
        self._watched = watch(
            fn, sites_of(self.analyses), finish=finish, strict=strict, mesh=mesh
        )
        self._off = is_off() or not self.analyses

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature of the user's function."""
        return inspect.signature(self._fn)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Values]:
        """Run the step; returns `(the function's whole result, Values)`."""
        if self._off:
            return self._fn(*args, **kwargs), Values()
        values: Values
        out, values = self._watched(*args, **kwargs)
        if self._strict:
            for fault in values.faults.values():
                raise fault.exception()
        return out, values

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """Discover, select and trace abstractly, without running anything.

        Args:
            *args: The arguments of the step, as arrays or `jax.ShapeDtypeStruct`s.
            **kwargs: Its keyword arguments.

        Returns:
            What each analysis looks at and returns, printable.

        Raises:
            PlanError: When any analysis has a fault; names all of them.
        """
        return make_plan(self._fn, self.analyses, args, kwargs)

    def check(self, *args: Any, **kwargs: Any) -> Check:
        """Run the step with and without the analyses and compare the results.

        Args:
            *args: Concrete arguments of the step; copied, so that a donating step
                leaves the caller's arrays alone.
            **kwargs: Its keyword arguments.

        Returns:
            The path of each leaf of the function's result, and of NNX state among
            the arguments -> whether it is the same to the last bit; printable.
        """
        whole = opened(self._fn)
        step = Instrumented(
            whole.fn, self.analyses, strict=self._strict, mesh=self._mesh
        )
        return make_check(whole.fn, step, *whole.whole(args, kwargs))

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Lower the instrumented program into a `jax.stages.Lowered`, for its cost."""
        return self._watched.lower(*args, **kwargs)


def _already(fn: object) -> bool:
    while fn is not None:
        if isinstance(fn, Instrumented):
            return True
        fn = getattr(fn, "__wrapped__", None)
    return False


def _by_name(
    analyses: Iterable[type[AnalysisBase] | AnalysisBase],
) -> dict[str, AnalysisBase]:
    if not isinstance(analyses, Iterable) or isinstance(analyses, str):
        raise BadInput(
            f"instrument(fn, {getattr(analyses, '__name__', analyses)}): analyses must "
            "be a list. Write instrument(fn, [A, B])."
        )
    made: dict[str, AnalysisBase] = {}
    for item in analyses:
        analysis = item() if isinstance(item, type) else item
        if not isinstance(analysis, AnalysisBase):
            raise BadInput(
                f"{item!r} is no analysis: give AnalysisBase classes or instances."
            )
        if not hasattr(analysis, "TARGET"):
            raise BadInput(
                f"{type(analysis).__name__} has no TARGET. Set it to the module class "
                "whose calls it looks at."
            )
        if analysis.NAME in made:
            raise BadInput(
                f"Two analyses have the NAME {analysis.NAME!r}: "
                f"{type(made[analysis.NAME]).__qualname__} and "
                f"{type(analysis).__qualname__}. Set another NAME in one of them."
            )
        made[analysis.NAME] = analysis
    return made


def _keep(
    made: dict[str, AnalysisBase], only: Iterable[str]
) -> dict[str, AnalysisBase]:
    wanted = {only} if isinstance(only, str) else set(only)
    for name in sorted(wanted - set(made)):
        raise BadInput(describe_unknown("analysis in only=", name, made))
    return {name: analysis for name, analysis in made.items() if name in wanted}
