"""NNX: the calls of a trace, and views of a module that leak nothing."""

import contextlib
import functools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import jax
from flax import nnx

from theseus_track.capture.inputs import bind, frozen
from theseus_track.capture.marked import Running
from theseus_track.capture.nnx_names import (
    clone,
    graph_nodes,
    is_node,
    name,
    names_of,
    unname,
)
from theseus_track.capture.observer import Changer, LiveCall, Observer
from theseus_track.capture.paths import CALL, Path
from theseus_track.capture.quiet import QUIET

__all__ = ["SOWING", "View", "intercept"]


class _Here(threading.local):
    """The interceptors of this thread, and the modules whose methods are running."""

    def __init__(self) -> None:
        self.interceptors: list[_Interceptor] = []
        self.running: list[tuple[nnx.Module, tuple[str, ...]]] = []


_here = _Here()


@contextlib.contextmanager
def intercept(
    observer: Observer, passed: Callable[[], None], calls: Running
) -> Iterator[None]:
    """Show an observer the calls of NNX modules in this thread.

    NNX has no interceptors of its own, so the methods in the classes are wrapped.
    Other threads go through the wrappers too, but see nothing of this one.

    Args:
        observer: Sees the calls.
        passed: Called after every call, wanted or not.
        calls: Told of every call too.

    Yields:
        Nothing.
    """
    _methods.wrap()
    _here.interceptors.append(_Interceptor(observer, passed, calls))
    try:
        yield
    finally:
        _here.interceptors.pop()
        _methods.restore()


class _Interceptor:
    """Shows one observer the calls."""

    def __init__(
        self, observer: Observer, passed: Callable[[], None], calls: Running
    ) -> None:
        self._observer = observer
        self._calls = calls
        self._passed = passed
        self._running: dict[tuple[int, str], Path] = {}
        self._turns: Counter[Path] = Counter()

    def call(
        self,
        proceed: Callable[..., Any],
        module: nnx.Module,
        path: Path,
        /,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Run a method; let the observer take part if it wants the call."""
        me = (id(module), path.method)
        # `super().__call__` and `Base.__call__(self, ...)` arrive here again.
        if me in self._running:
            return proceed(*args, **kwargs)

        def run(*args: Any, **kwargs: Any) -> Any:
            with self._calls.inside(path, lambda: View(module)) as running_call:
                output = proceed(*args, **kwargs)
            return _same_nodes(self._calls.settled(running_call, output), output)

        if not self._observer.wants(module, path):
            output = run(*args, **kwargs)
            self._passed()
            return output
        if isinstance(self._observer, Changer):
            args, kwargs = self._observer.given(
                module, path, self._turns[path], args, kwargs
            )
        # Both as they are at the entry: the module may change either.
        view = View(module) if self._observer.needs_view else None
        given = _copied((args, kwargs))
        call = LiveCall(
            module=module,
            path=path,
            # Copied once more for each reader, who may change it too.
            arguments=lambda: bind(getattr(type(module), path.method), *_copied(given)),
            view=view,
            turn=self._turns[path],
            inside=tuple(self._running.values()),
        )
        self._running[me] = path
        try:
            output = run(*args, **kwargs)
        finally:
            del self._running[me]
        self._turns[path] += 1
        output = _same_nodes(self._observer.returned(call, output), output)
        self._passed()
        return output


def _copied(tree: Any) -> Any:
    """Copy containers and graph nodes: whoever gets them may change them."""
    copy = clone(tree)
    if not graph_nodes(copy):
        return frozen(copy)
    return jax.tree.map(
        lambda leaf: leaf if is_node(leaf) else frozen(leaf), copy, is_leaf=is_node
    )


def _same_nodes(new: Any, output: Any) -> Any:
    """Put the very graph nodes of the output into what an observer made of it."""
    nodes = iter(graph_nodes(output))
    if not graph_nodes(new):
        return new
    return jax.tree.map(
        lambda leaf: next(nodes) if is_node(leaf) else leaf, new, is_leaf=is_node
    )


SOWING = (nnx.Module, names_of)
"""Whose `sow` counts, and how to name a module that sows."""


@contextlib.contextmanager
def _named(module: nnx.Module) -> Iterator[tuple[str, ...]]:
    """Give the names of a module whose method runs; nothing is left of ours.

    A module without names is the root of the outermost call. If another call is
    running, then it was made since: it may be attached to the module that called it,
    or else stands beside the parameters, and is called by its class.
    """
    named: list[nnx.Module] = []
    names = names_of(module)
    if names is None and _here.running:
        parent, above = _here.running[-1]
        named += name(parent, above)
        names = names_of(module)
    if names is None:
        names = (*above, type(module).__name__) if _here.running else ()
        named += name(module, names)
    _here.running.append((module, names))
    try:
        yield names
    finally:
        _here.running.pop()
        if named:
            # Whoever was named now, and what NNX has built from it meanwhile.
            unname([*named, module])


class _Methods:
    """The methods of all NNX classes, wrapped as long as anybody traces."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._wrapped: dict[tuple[type, str], tuple[Any, Any]] = {}

    def wrap(self) -> None:
        """Wrap the methods of all classes that there are by now."""
        with self._lock:
            self._users += 1
            for cls in _subclasses(nnx.Module):
                for method, original in list(vars(cls).items()):
                    if (cls, method) not in self._wrapped and _is_method(
                        method, original
                    ):
                        wrapper = _wrapper(cls, method, original)
                        setattr(cls, method, wrapper)
                        self._wrapped[cls, method] = (original, wrapper)

    def restore(self) -> None:
        """Put the methods back, if nobody else needs the wrappers."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            for (cls, method), (original, wrapper) in self._wrapped.items():
                # Unless somebody has replaced it meanwhile.
                if vars(cls).get(method) is wrapper:
                    setattr(cls, method, original)
            self._wrapped.clear()


_methods = _Methods()


def _subclasses(cls: type) -> set[type]:
    found: set[type] = set()
    pending = [cls]
    while pending:
        below: list[type] = pending.pop().__subclasses__()
        new = [one for one in below if one not in found]
        found.update(new)
        pending += new
    return found


def _is_method(method: str, value: object) -> bool:
    """Tell whether a class attribute is a public method, jitted ones included."""
    public = method == CALL or not method.startswith("_")
    return (
        public
        and callable(value)
        and hasattr(type(value), "__get__")
        and not isinstance(value, type | staticmethod | classmethod)
    )


def _wrapper(cls: type, method: str, original: Any) -> Callable[..., Any]:
    @functools.wraps(original, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not (_here.interceptors and args and isinstance(args[0], cls)):
            return original(*args, **kwargs)
        module: Any = args[0]
        proceed = functools.partial(original, module)
        if QUIET.on:
            return _on_view(proceed, module, args[1:], kwargs)
        with _named(module) as names:
            path = Path(names, method)
            # The last interceptor added is next to the method, as in Linen.
            for interceptor in reversed(_here.interceptors):
                proceed = functools.partial(interceptor.call, proceed, module, path)
            return proceed(*args[1:], **kwargs)

    return wrapper


def _on_view(
    proceed: Callable[..., Any],
    module: nnx.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Run a method that an analysis called; it leaves all state as it was.

    So calling the layer twice gives the same output twice: that of the real call.
    """
    if QUIET.inside:
        return proceed(*args, **kwargs)
    QUIET.inside = True
    try:
        with _unchanged([module, *graph_nodes((args, kwargs))]):
            return proceed(*args, **kwargs)
    finally:
        QUIET.inside = False


@contextlib.contextmanager
def _unchanged(nodes: list[Any]) -> Iterator[None]:
    """Bring graph nodes back to what they are now."""
    parts = [part for node in nodes for _, part in nnx.iter_graph(node, graph=True)]
    variables = [
        (part, part.get_raw_value()) for part in parts if isinstance(part, nnx.Variable)
    ]
    attributes = [
        (part, dict(vars(part))) for part in parts if isinstance(part, nnx.Pytree)
    ]
    try:
        yield
    finally:
        for variable, value in variables:
            if variable.get_raw_value() is not value:
                variable.set_raw_value(value)
        for part, before in attributes:
            vars(part).clear()
            vars(part).update(before)


class View:
    """A module as it was when this was made, anew for each who looks at it.

    Calling the layer gives what the real call gives, dropout included, and changes
    no state, neither the run's nor the view's.
    """

    def __init__(self, module: nnx.Module) -> None:
        self._entry = clone(module)

    @property
    def entry(self) -> nnx.Module:
        """The module as it was when this was made; to be read, not called."""
        module: nnx.Module = self._entry
        return module

    def run(self, function: Callable[[Any], Any]) -> Any:
        """Call a function with the layer; no observer sees what it does."""
        before = (QUIET.on, QUIET.view, QUIET.inside)
        QUIET.on, QUIET.view, QUIET.inside = True, None, False
        try:
            return function(clone(self._entry))
        finally:
            QUIET.on, QUIET.view, QUIET.inside = before
