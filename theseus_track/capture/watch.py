"""A function that also returns what was asked about the calls inside it."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from theseus_track.capture.jitted import is_jitted, rejit
from theseus_track.capture.prepare import Plan, Prepared
from theseus_track.capture.program import Arguments, Program, read_arguments, trace
from theseus_track.capture.recent import Recent
from theseus_track.capture.select import one_line, trace_text
from theseus_track.capture.sites import Call, Captures, Fault, Site, SiteCapture
from theseus_track.errors import BadInput, UnsupportedProgram

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
) -> "Watched":
    """Make a function also return what sites ask about the calls inside it.

    Args:
        fn: A function or a `jax.jit` object. A jitted one stays jitted: compiled
            once per shape, static arguments, donation and shardings kept. A plain
            one is traced at every call and evaluated; it may be jitted around, and
            should be if it is called often. Differentiate inside it, not around the
            returned function: a custom derivative with a selected call inside is
            evaluated by then, and its rule is lost.
        sites: What is asked for, by name.
        finish: Applied to the captures inside the traced program.
        strict: Raise the first fault. Otherwise a fault costs its site's values.

    Returns:
        A function with the signature of `fn` that returns `fn`'s output and the
        captures, or what `finish` made of them.

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
    return Watched(fn, sites, finish=finish, strict=strict)


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
    ) -> None:
        if not callable(fn):
            raise BadInput(f"Only a function can be watched, not {fn!r}.")
        functools.update_wrapper(self, fn, updated=())
        with contextlib.suppress(TypeError, ValueError):  # Some built-ins have none.
            self.__signature__ = inspect.signature(fn)
        self._sites = dict(sites)
        self._finish = finish or _unchanged
        self._strict = strict
        self._plans = Recent[Plan](64)
        # In the trace of our own `jax.jit` the user's jitted function is a call like
        # any other, and JAX keeps our compiled functions as it keeps the user's.
        self._call = rejit(fn, self._watch) if is_jitted(fn) else self._watch

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Call the function; return its output and the captures."""
        out, finished = self._call(*args, **kwargs)
        return out, finished

    def lower(self, *args: Any, **kwargs: Any) -> jax.stages.Lowered:
        """Lower the function with its analyses, as `jax.jit(fn).lower` does.

        Only arrays of a plain function's output are part of what is lowered.
        """
        if is_jitted(self.__wrapped__):
            jitted: Any = self._call
            lowered: jax.stages.Lowered = jitted.lower(*args, **kwargs)
            return lowered
        arguments = read_arguments(args, kwargs)

        def flat(*arrays: Any) -> list[Any]:
            inner_args, inner_kwargs = arguments.restore(list(arrays))
            leaves = jax.tree.leaves(self._watch(*inner_args, **inner_kwargs))
            return [leaf for leaf in leaves if isinstance(leaf, jax.Array)]

        return jax.jit(flat).lower(*arguments.arrays)

    def trace_abstract(self, *args: Any, **kwargs: Any) -> WatchTrace:
        """Say what a call would return, from shapes alone; nothing is computed.

        Args:
            *args: Arguments; arrays may be `jax.ShapeDtypeStruct`.
            **kwargs: Keyword arguments.
        """
        arguments = read_arguments(args, kwargs)
        try:
            prepared = self._prepare(arguments)
        except _StrictFault as fault:
            raise fault.error from None
        except Exception as error:  # noqa: BLE001 - as in _watch
            program = trace(self.__wrapped__, arguments)
            captures = self._nothing(error)
            return _abstract(program, captures, {name: {} for name in self._sites})
        return _abstract(
            prepared.program, prepared.abstract(), prepared.discovery.calls
        )

    def _watch(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Trace the function with its analyses, and evaluate it."""
        try:
            arguments = read_arguments(args, kwargs)
            prepared = self._prepare(arguments)
            results, kept = prepared.evaluate(arguments.arrays)
        except _StrictFault as fault:
            raise fault.error from None
        except Exception as error:  # noqa: BLE001 - no fault of ours may stop the user's code
            # Should the error be the function's own, then it is raised here.
            output = self.__wrapped__(*args, **kwargs)
            return output, self._finish(self._nothing(error))
        captures = prepared.captures(kept)
        return prepared.program.restore(results), self._finish(captures)

    def _prepare(self, arguments: Arguments) -> Prepared:
        plan = self._plans.get(arguments.key(), lambda: Plan(self._sites))
        prepared = plan.prepare(self.__wrapped__, arguments)
        for site in prepared.bare.values():
            if self._strict and site.fault:
                raise _StrictFault(site.fault.exception())
        return prepared

    def _nothing(self, error: Exception) -> Captures:
        """Make the captures of a function that could not be watched."""
        sites = {}
        for name in self._sites:
            message = (
                f"Site {name!r}: the function cannot be watched and ran without "
                f"analyses: {one_line(error)}"
            )
            fault = Fault("trace", message, trace_text(error), UnsupportedProgram)
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


def _abstract(
    program: Program, captures: Captures, calls: Mapping[str, Mapping[str, Call]]
) -> WatchTrace:
    avals: list[Any] = list(program.closed.out_avals)
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
    return WatchTrace(
        out=program.restore(shapes),
        captures=captures,
        calls=calls,
        faults=captures.faults,
    )
