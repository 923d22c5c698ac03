"""A function that also returns what was asked about the calls inside it."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from theseus_track.capture.edited import EditedRuns
from theseus_track.capture.edits import check_edits
from theseus_track.capture.jitted import is_jitted, lowered, nested, rejit
from theseus_track.capture.prepare import Plan, Prepared
from theseus_track.capture.program import (
    Arguments,
    Program,
    explained,
    opened,
    read_arguments,
    trace,
)
from theseus_track.capture.recent import Recent
from theseus_track.capture.replicate import find_mesh, replicated
from theseus_track.capture.select import one_line, trace_text
from theseus_track.capture.sites import Call, Captures, Fault, Site, SiteCapture
from theseus_track.errors import BadInput, ClosedOverState, UnsupportedProgram

__all__ = ["WatchTrace", "Watched", "watch"]

Finish = Callable[[Captures], Any]


@dataclass(frozen=True, kw_only=True)
class WatchTrace:
    """What a watched function would return, from shapes alone.

    Attributes:
        out: The function's output, arrays as shapes.
        captures: The captures, arrays as shapes.
        calls: By site, the calls of its target by path, in program order.
        faults: By site, what is wrong.
    """

    out: Any
    captures: Captures
    calls: Mapping[str, Mapping[str, Call]]
    faults: Mapping[str, Fault]


def watch(
    fn: Callable[..., Any],
    sites: Mapping[str, Site],
    *,
    finish: Finish | None = None,
    strict: bool = False,
    mesh: jax.sharding.Mesh | None = None,
) -> "Watched":
    """Make a function also return what sites ask about the calls inside it.

    Args:
        fn: A function, a `jax.jit` or an `nnx.jit` object. A jitted one stays jitted:
            compiled once per shape, static arguments, donation and shardings kept. A
            plain one is traced at every call and evaluated; it may be jitted around,
            and should be if it is called often. Differentiate inside it, not around
            the returned function: a custom derivative with a selected call inside is
            evaluated by then, and its rule is lost. Modules, metrics and other graph
            nodes of NNX among the arguments are updated as `nnx.jit` would do it.
        sites: What is asked for, by name.
        finish: Applied to the captures inside the traced program.
        strict: Raise the first fault. Otherwise a fault costs its site's values.
        mesh: What the values are replicated on where neither the arguments nor the
            context tell a mesh.

    Returns:
        A function with the signature of `fn` that returns `fn`'s output and the
        captures, or what `finish` made of them. On a mesh these are whole on every
        device, however the function's own arguments and output are placed.

    Example:
        >>> import flax.linen as nn, jax, jax.numpy as jnp
        >>> from theseus_track.capture import Site, watch
        >>> model = nn.Dense(2)
        >>> x = jnp.ones((1, 3))
        >>> variables = model.init(jax.random.key(0), x)
        >>> total = Site(
        ...     target=nn.Dense,
        ...     select=lambda paths: paths[0],
        ...     analyze=lambda layer, inputs: inputs.inputs.sum(),
        ... )
        >>> y, captures = watch(jax.jit(model.apply), {"total": total})(variables, x)
        >>> captures["total"].values
        {'': Array(3., dtype=float32)}
    """
    return Watched(fn, sites, finish=finish, strict=strict, mesh=mesh)


class Watched:
    """A watched function; made by `watch`."""

    __name__: str
    __wrapped__: Callable[..., Any]

    def __init__(
        self,
        fn: Callable[..., Any],
        sites: Mapping[str, Site],
        *,
        finish: Finish | None,
        strict: bool,
        mesh: jax.sharding.Mesh | None,
    ) -> None:
        if not callable(fn):
            raise BadInput(f"Only a function can be watched, not {fn!r}.")
        functools.update_wrapper(self, fn, updated=())
        with contextlib.suppress(TypeError, ValueError):  # Some built-ins have none.
            self.__signature__ = inspect.signature(fn)
        self._sites = dict(sites)
        self._finish = finish or _unchanged
        self._strict = strict
        self._mesh = mesh
        for site in self._sites.values():
            check_edits(site.edits or {})
        self._plans = Recent[tuple[Plan, EditedRuns]](64)
        # In the trace of our own `jax.jit` the user's jitted function is a call like
        # any other, and JAX keeps our compiled functions as it keeps the user's.
        self._opened = opened(fn)
        inner = self._opened.fn
        self._jitted = is_jitted(inner)
        self._whole = rejit(inner, self._watch) if self._jitted else self._watch
        self._call = self._opened.give(self._whole)
        self._inner = nested(inner)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Call the function; return its output and the captures."""
        out, finished = self._call(*args, **kwargs)
        return out, finished

    def lower(self, *args: Any, **kwargs: Any) -> jax.stages.Lowered:
        """Lower the function with its analyses, as `jax.jit(fn).lower` does.

        Only arrays of a plain function's output are part of what is lowered.
        """
        args, kwargs = self._opened.whole(args, kwargs)
        if self._jitted:
            return lowered(self._whole, args, kwargs)

        def flat(*arrays: Any) -> list[Any]:
            inner_args, inner_kwargs = arguments.restore(list(arrays))
            out = self._watch(*inner_args, **inner_kwargs)
            leaves = jax.tree.leaves(arguments.leave(inner_args, inner_kwargs, out))
            return [leaf for leaf in leaves if isinstance(leaf, jax.Array)]

        with read_arguments(args, kwargs) as arguments:
            return jax.jit(flat).lower(*arguments.arrays)

    def trace_abstract(self, *args: Any, **kwargs: Any) -> WatchTrace:
        """Say what a call would return, from shapes alone; nothing is computed.

        Args:
            *args: Arguments; arrays may be `jax.ShapeDtypeStruct`.
            **kwargs: Keyword arguments.
        """
        args, kwargs = self._opened.whole(args, kwargs)
        with read_arguments(args, kwargs) as arguments:
            try:
                prepared, edited = self._prepare(arguments)
                plain = prepared.abstract()
                captures = edited.abstract(self._inner, arguments, plain)
                self._check(captures)
            except _StrictFault as fault:
                raise fault.error from None
            except Exception as error:  # noqa: BLE001 - as in _watch
                captures = self._nothing(error)
                program = trace(self._inner, arguments)
                calls: dict[str, dict[str, Call]] = {name: {} for name in self._sites}
            else:
                program, found = prepared.program, prepared.discovery.calls
                calls = {name: found[name] for name in self._sites}
            return WatchTrace(
                out=arguments.peek(_shapes(program)),
                captures=captures,
                calls=calls,
                faults=captures.faults,
            )

    def _watch(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Trace the function with its analyses, and evaluate it."""
        try:
            with read_arguments(args, kwargs) as arguments:
                prepared, edited = self._prepare(arguments)
                results, kept = prepared.evaluate(arguments.arrays)
                plain = prepared.captures(kept)
                captures = edited.run(self._inner, arguments, plain)
                self._check(captures)
                output = arguments.finish(prepared.program.restore(results))
        except _StrictFault as fault:
            raise fault.error from None
        except Exception as error:  # noqa: BLE001 - no fault of ours may stop the user's code
            # Should the error be the function's own, then it is raised here.
            with explained(self.__wrapped__):
                output = self._inner(*args, **kwargs)
            return output, self._finish(self._nothing(error))
        finished = self._finish(captures)
        mesh = find_mesh(arguments.arrays) or self._mesh
        return output, replicated(finished, mesh)

    def _prepare(self, arguments: Arguments) -> tuple[Prepared, EditedRuns]:
        plan, edited = self._plans.get(arguments.key(), self._planned)
        prepared = plan.prepare(self._inner, arguments)
        self._check(prepared.bare)
        return prepared, edited

    def _planned(self) -> tuple[Plan, EditedRuns]:
        edited = EditedRuns(self._sites)
        return Plan({**self._sites, **edited.sources}), edited

    def _check(self, found: Mapping[str, SiteCapture]) -> None:
        """Raise the first fault, if that is asked for."""
        for name in self._sites:
            fault = found[name].fault
            if self._strict and fault:
                raise _StrictFault(fault.exception())

    def _nothing(self, error: Exception) -> Captures:
        """Make the captures of a function that could not be watched."""
        sites = {}
        ours = isinstance(error, ClosedOverState)
        for name in self._sites:
            message = (
                f"{name!r}: the function cannot be watched and ran without "
                f"analyses: {str(error) if ours else one_line(error)}"
            )
            kind = ClosedOverState if ours else UnsupportedProgram
            fault = Fault("trace", message, trace_text(error), kind)
            if self._strict:
                raise fault.exception() from error
            sites[name] = SiteCapture(fault=fault)
        return Captures(sites)


class _StrictFault(Exception):
    """Carries an error of ours through the handler for everybody else's."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def _unchanged(captures: Captures) -> Captures:
    return captures


def _shapes(program: Program) -> Any:
    """Return what a program's results are, from shapes alone."""
    avals: list[Any] = list(program.closed.out_avals)
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
    return program.restore(shapes)
