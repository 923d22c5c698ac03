"""Linen: the calls of a trace, and views of a module that leak nothing."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import flax.core
import flax.linen as nn
import jax

from theseus_track.capture.inputs import bind, frozen
from theseus_track.capture.marked import Running
from theseus_track.capture.observer import Changer, LiveCall, Observer
from theseus_track.capture.paths import Path
from theseus_track.capture.quiet import QUIET

__all__ = ["SOWING", "View", "intercept"]


@contextlib.contextmanager
def intercept(
    observer: Observer, passed: Callable[[], None], calls: Running
) -> Iterator[None]:
    """Show an observer the calls of Linen modules in this thread.

    Args:
        observer: Sees the calls.
        passed: Called after every call, wanted or not.
        calls: Told of every call too.

    Yields:
        Nothing.
    """
    running: dict[tuple[int, str], Path] = {}
    turns: Counter[Path] = Counter()

    def interceptor(
        proceed: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        context: nn.module.InterceptorContext,
    ) -> Any:
        module, method = context.module, context.method_name
        if QUIET.on:
            return _on_view(proceed, args, kwargs)
        me = (id(module), method)
        # `super().__call__` and `Base.__call__(self, ...)` arrive here again.
        if module.scope is None or me in running:
            return proceed(*args, **kwargs)
        path = Path(tuple(module.scope.path), method)

        def run(*args: Any, **kwargs: Any) -> Any:
            with calls.inside(path, lambda: View(module)) as running_call:
                output = proceed(*args, **kwargs)
            return calls.settled(running_call, output)

        if not observer.wants(module, path):
            output = run(*args, **kwargs)
            passed()
            return output
        if isinstance(observer, Changer):
            args, kwargs = observer.given(module, path, turns[path], args, kwargs)
        # Both as they are at the entry: the module may change either.
        view = View(module) if observer.needs_view else None
        given = frozen((args, kwargs))
        call = LiveCall(
            module=module,
            path=path,
            # Copied once more for each reader, who may change it too.
            arguments=lambda: bind(getattr(type(module), method), *frozen(given)),
            view=view,
            turn=turns[path],
            inside=tuple(running.values()),
        )
        running[me] = path
        try:
            output = run(*args, **kwargs)
        finally:
            del running[me]
        turns[path] += 1
        output = observer.returned(call, output)
        passed()
        return output

    with nn.intercept_methods(interceptor):
        yield


def _names(module: nn.Module) -> tuple[str, ...] | None:
    return None if module.scope is None else tuple(module.scope.path)


SOWING = (nn.Module, _names)
"""Whose `sow` counts, and how to name a module that sows."""


def _on_view(
    proceed: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run a method that an analysis called on its view.

    Each outermost call starts from the state at the entry of the real call, so that
    calling the layer twice gives the same output twice.
    """
    if QUIET.view is None or QUIET.inside:
        return proceed(*args, **kwargs)
    QUIET.view.rewind()
    QUIET.inside = True
    try:
        return proceed(*args, **kwargs)
    finally:
        QUIET.inside = False


class _Enclosure(nn.Module):
    """Runs a function away from the user's modules.

    A module that is built in a compact method attaches itself to the module being
    called, which shifts the names of its later children. Inside this one, whatever
    an analysis builds attaches here.
    """

    @nn.compact
    def __call__(self, function: Callable[[], Any]) -> Any:
        """Call the function."""
        return function()


@dataclass(frozen=True)
class _State:
    """Variables and RNG counters of one scope at the entry, and those in use."""

    variables: dict[str, Any]
    counters: dict[Any, Any]
    used_variables: dict[str, Any]
    used_counters: dict[Any, Any]


class View:
    """A module as it was when this was made, with a state of its own.

    Calling the view's layer gives what the real call gives, dropout included, and
    reaches neither the RNG counters nor the variables of the run.
    """

    def __init__(self, module: nn.Module) -> None:
        self._states: list[_State] = []
        self._layers: dict[int, nn.Module] = {}
        self._layer = self._isolated(module)

    @property
    def entry(self) -> nn.Module:
        """The module as it was when this was made; to be read, not called."""
        self.rewind()  # An analysis of the same call may have called it.
        return self._layer

    def run(self, function: Callable[[Any], Any]) -> Any:
        """Call a function with the layer; no observer sees what it does."""
        before = (QUIET.on, QUIET.view, QUIET.inside)

        def inside() -> Any:
            QUIET.view = self
            return function(self._layer)

        QUIET.on, QUIET.view, QUIET.inside = True, None, False
        try:
            return _Enclosure(parent=None).apply({}, inside)
        finally:
            QUIET.on, QUIET.view, QUIET.inside = before

    def rewind(self) -> None:
        """Bring variables and RNG counters back to the entry of the real call."""
        for state in self._states:
            _put_back(state.used_variables, state.variables)
            _put_back(state.used_counters, state.counters)

    def _isolated(self, module: nn.Module) -> nn.Module:
        """Rebuild a bound module, and those that it was given, on scopes of their own.

        A submodule passed as an attribute is bound to its scope already (it may
        be shared with another part of the model), so it needs one too.
        """
        if module.scope is None:
            return module
        if id(module) not in self._layers:
            given = {
                field.name: self._map(getattr(module, field.name))
                for field in fields(module)
                if field.init and field.name not in ("parent", "name")
            }
            scope = self._scope(module.scope)
            self._layers[id(module)] = module.clone(parent=scope, **given)
        return self._layers[id(module)]

    def _map(self, value: Any) -> Any:
        leaves, tree = jax.tree.flatten(value)
        if not any(isinstance(leaf, nn.Module) for leaf in leaves):
            return value
        mapped = [
            self._isolated(leaf) if isinstance(leaf, nn.Module) else leaf
            for leaf in leaves
        ]
        return jax.tree.unflatten(tree, mapped)

    def _scope(self, scope: flax.core.Scope) -> flax.core.Scope:
        variables = _copied(scope.variables())
        own = flax.core.Scope(
            variables,
            scope.rngs,
            scope.name,
            scope.mutable,
            None,
            path=scope.path,
            flags=scope.flags,
        )
        # Copied by hand: `deepcopy` would clone the sentinel by which Flax 0.12
        # finds the counters of child scopes, and a second call of a shared module
        # would then draw another dropout mask than the real one.
        own.rng_counters = _copied(scope.rng_counters)
        counters = own.rng_counters
        self._states.append(
            _State(_copied(variables), _copied(counters), variables, counters)
        )
        return own


def _copied(tree: Mapping[Any, Any]) -> dict[Any, Any]:
    return {
        key: _copied(value) if isinstance(value, Mapping) else value
        for key, value in tree.items()
    }


def _put_back(used: dict[Any, Any], entry: Mapping[Any, Any]) -> None:
    """Restore a nested dict in place: child scopes hold references into it."""
    for key, value in list(used.items()):
        if isinstance(value, dict):
            _put_back(value, entry.get(key, {}))
        elif key in entry:
            used[key] = entry[key]
        elif isinstance(value, int):
            used[key] = 0  # The counter of a child that was first used in the view.
        else:
            del used[key]
