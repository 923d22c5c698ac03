"""Values that no call returns but that code marks, by `tap` or by a module's `sow`."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from jax.extend.core import get_opaque_trace_state

from theseus_track.capture.inputs import Inputs
from theseus_track.capture.observer import LiveCall, Observer, View
from theseus_track.capture.paths import Path
from theseus_track.capture.quiet import QUIET

__all__ = [
    "Marked",
    "Marker",
    "NamesOf",
    "Running",
    "Sown",
    "Tapped",
]


NamesOf = Callable[[Any], tuple[str, ...] | None]


@dataclass(frozen=True)
class Tapped:
    """A target: the values that code marks with `tap(name, ...)`.

    Attributes:
        name: What they are called; None for all.
    """

    name: str | None = None

    def __call__(self, found: object) -> bool:
        """Tell whether something found while tracing is such a value."""
        if not isinstance(found, Marked) or found.sown:
            return False
        return self.name in (None, found.name)


@dataclass(frozen=True)
class Sown:
    """A target: the values that modules of Linen and NNX sow.

    Whether their collection is mutable or not; it is neither read nor changed.

    Attributes:
        name: What they are called; None for all.
        collection: As the modules give it to `sow`: "intermediates" in Linen, a
            Variable type in NNX; None for any.
    """

    name: str | None = None
    collection: Any = None

    def __call__(self, found: object) -> bool:
        """Tell whether something found while tracing is such a value."""
        if not isinstance(found, Marked) or not found.sown:
            return False
        named = self.name in (None, found.name)
        return named and self.collection in (None, found.collection)


@dataclass(frozen=True, eq=False)
class Marked:
    """A value that was marked; stands where targets and observers expect a module.

    Attributes:
        name: What it is called.
        value: A pytree.
        sown: It comes from `sow`, not from `tap`.
        collection: What it was sown into.
    """

    name: str
    value: Any
    sown: bool
    collection: Any = None


@dataclass(frozen=True, kw_only=True)
class _MarkedCall(LiveCall):
    """A marked value, as observers see calls."""

    @property
    def cls(self) -> str:
        return "a sown value" if self.module.sown else "a tapped value"

    @property
    def qualname(self) -> str:
        return self.cls

    def inputs(self, _output: Any) -> Inputs:
        value = self.module.value
        return Inputs({"value": value}, output=value)


@runtime_checkable
class Marker(Observer, Protocol):
    """An observer that is also shown marked values."""

    sees_marks: bool


def _trace_state() -> Any:
    """Return what is equal in one and the same trace."""
    return get_opaque_trace_state(convention="flax")


@dataclass(frozen=True, eq=False)
class _Call:
    """A call that is running, and what was sown in it."""

    path: Path
    make_view: Callable[[], View]
    state: Any = field(default_factory=_trace_state)
    sown: list[_MarkedCall] = field(default_factory=list)


class _NoModule:
    """The view of a value that was tapped outside of all modules."""

    entry = None

    def run(self, function: Callable[[Any], Any]) -> Any:
        before = (QUIET.on, QUIET.view, QUIET.inside)
        QUIET.on, QUIET.view, QUIET.inside = True, None, False
        try:
            return function(None)
        finally:
            QUIET.on, QUIET.view, QUIET.inside = before


class Running:
    """The calls that run in one private trace; brings marked values to its observer.

    Args:
        observer: Sees the values, if it is a `Marker`.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer if isinstance(observer, Marker) else None
        self._calls: list[_Call] = []

    @contextlib.contextmanager
    def inside(self, path: Path, make_view: Callable[[], View]) -> Iterator[_Call]:
        """Note that a call runs.

        Args:
            path: Where it happens.
            make_view: Makes a view of its module as it is then.

        Yields:
            What `settled` takes when the call has returned.
        """
        call = _Call(path, make_view)
        self._calls.append(call)
        try:
            yield call
        finally:
            self._calls.pop()

    def settled(self, call: _Call, output: Any) -> Any:
        """Show what was sown in a call that returned: it rides on the output."""
        for sown in call.sown:
            assert self._observer is not None  # Else nothing is noted.
            output = self._observer.returned(sown, output)
        return output

    def tap(self, name: str, output: Any, value: Any) -> Any:
        """Show a value that was marked by `tap`; return its output."""
        above = self._calls[-1].path.names if self._calls else ()
        marked = Marked(name, value, sown=False)
        live = self._live(marked, (*above, name))
        if live is None or self._observer is None:
            return output
        return self._observer.returned(live, output)

    def sow(self, marked: Marked, names: tuple[str, ...]) -> Any:
        """Show a value that a module sows; return the value to be stored."""
        live = self._live(marked, (*names, marked.name))
        if live is None or self._observer is None:
            return marked.value
        if self._calls and self._calls[-1].state == _trace_state():
            # The call's output reaches what the function returns; the value may not.
            self._calls[-1].sown.append(live)
            return marked.value
        # Inside a transformation that the call does not leave with this value.
        return self._observer.returned(live, marked.value)

    def _live(self, marked: Marked, names: tuple[str, ...]) -> _MarkedCall | None:
        path = Path(names)
        observer = self._observer
        if observer is None or not observer.wants(marked, path):
            return None
        view: View | None = None
        if observer.needs_view:
            view = self._calls[-1].make_view() if self._calls else _NoModule()
        return _MarkedCall(
            module=marked,
            path=path,
            arguments=lambda: {"value": marked.value},
            view=view,
            turn=0,
            inside=tuple(call.path for call in self._calls),
        )
