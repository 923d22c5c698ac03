"""Linen: a bound module as a frame and arrays, and built from them anew."""

import contextlib
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import flax.core
import flax.linen as nn
import jax
from flax.core.scope import LazyRng, child_rng_token

from theseus_track.capture.observer import LiveCall

__all__ = ["LinenFrame", "OpenedLinen", "ScopeFrame", "entered", "freeze"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ScopeFrame:
    """A scope without its arrays.

    Attributes:
        path: Names from the root down.
        mutable: Which collections the function lets change.
        flags: What Flax notes on a scope.
        folds: By stream, what is folded into its key before each draw.
    """

    path: tuple[str, ...]
    mutable: Any
    flags: Mapping[str, Any]
    folds: Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True, eq=False)
class LinenFrame:
    """A Linen layer without its arrays.

    Attributes:
        modules: The layer, then those modules in its attributes that live elsewhere
            in the model (a tied embedding), all unbound.
        scopes: The scope of each of them.
    """

    modules: tuple[nn.Module, ...]
    scopes: tuple[ScopeFrame, ...]

    def open(self, params: Any, state: Any) -> "OpenedLinen":
        """Build the layer anew, on scopes of its own."""
        scopes = [
            _scope(frame, _variables(name, params, state), _at(name, state))
            for name, frame in self._named()
        ]
        homes = {id(m): s for m, s in zip(self.modules, scopes, strict=True)}
        return OpenedLinen(_rebuilt(self.modules[0], homes, {}), self, scopes)

    def thaw(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return inputs with containers of their own."""
        return dict(jax.tree.map(lambda leaf: leaf, inputs))

    def read(self, scopes: list[flax.core.Scope]) -> tuple[Any, Any]:
        """Return the parameters and the rest that live scopes hold."""
        params: dict[str, Any] = {}
        state: dict[str, Any] = {}
        for (name, _), scope in zip(self._named(), scopes, strict=True):
            variables = _plain(scope.variables())
            own, rest = variables.pop("params", {}), variables
            if scope.rngs:
                rest["rng_keys"] = {k: r.rng for k, r in scope.rngs.items()}
                rest["rng_counters"] = dict(_counters(scope.rng_counters))
            params |= {name: own} if name else own
            state |= {name: rest} if name else rest
        return params, state

    def _named(self) -> Iterator[tuple[str, ScopeFrame]]:
        """Pair each scope with where its arrays are: "" for the layer itself."""
        for number, frame in enumerate(self.scopes):
            yield ("/" + "/".join(frame.path) if number else "", frame)


@dataclass(frozen=True)
class OpenedLinen:
    """A layer built from its frame."""

    layer: nn.Module
    frame: LinenFrame
    scopes: list[flax.core.Scope]

    def state(self) -> Any:
        """Return what the layer holds now, but the parameters."""
        return self.frame.read(self.scopes)[1]


def freeze(call: LiveCall) -> tuple[LinenFrame, dict[str, Any]]:
    """Take a call that has just returned apart.

    Returns:
        The frame; and parameters and state at the entry, the inputs, and the state
        after the call.
    """
    assert call.view is not None
    before, after = (_bound(module) for module in (call.view.entry, call.module))
    scopes: list[flax.core.Scope] = [_scope_of(module) for module in before]
    unbound: dict[int, nn.Module] = {}
    _unbound(before[0], unbound)
    frame = LinenFrame(
        tuple(unbound[id(module)] for module in before),
        tuple(
            ScopeFrame(
                tuple(scope.path),
                scope.mutable,
                dict(scope.flags),
                {name: rng.suffix for name, rng in scope.rngs.items()},
            )
            for scope in scopes
        ),
    )
    params, state = frame.read(scopes)
    _, left = frame.read([_scope_of(module) for module in after])
    return frame, {
        "params": params,
        "state": state,
        "inputs": call.arguments(),
        "after": left,
    }


def _scope_of(module: nn.Module) -> flax.core.Scope:
    assert module.scope is not None  # Only bound modules are called.
    return module.scope


def _bound(layer: nn.Module) -> list[nn.Module]:
    """List a layer, and the modules in its attributes that live elsewhere."""
    found: dict[int, nn.Module] = {}
    seen: set[int] = set()

    def visit(module: nn.Module) -> None:
        if id(module) in seen or module.scope is None:
            return
        seen.add(id(module))
        if module is layer or not _is_below(module, layer):
            found[id(module)] = module
        for one in _attributes(module).values():
            for below in one:
                visit(below)

    visit(layer)
    return list(found.values())


def _is_below(module: nn.Module, layer: nn.Module) -> bool:
    inner, outer = tuple(_scope_of(module).path), tuple(_scope_of(layer).path)
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def _attributes(module: nn.Module) -> dict[str, list[nn.Module]]:
    """Return the modules in each attribute that holds some."""
    found = {}
    for field in fields(module):
        if field.init and field.name not in ("parent", "name"):
            leaves = jax.tree.leaves(getattr(module, field.name, None))
            modules = [leaf for leaf in leaves if isinstance(leaf, nn.Module)]
            if modules:
                found[field.name] = modules
    return found


def _mapped(module: nn.Module, one: Any) -> dict[str, Any]:
    """Map the modules in the attributes of a module."""
    return {
        name: jax.tree.map(
            lambda leaf: one(leaf) if isinstance(leaf, nn.Module) else leaf,
            getattr(module, name),
        )
        for name in _attributes(module)
    }


def _unbound(module: nn.Module, known: dict[int, nn.Module]) -> nn.Module:
    """Copy a module without its scope, and those that it was given."""
    if id(module) not in known:
        given = _mapped(module, lambda below: _unbound(below, known))
        known[id(module)] = module.clone(parent=None, **given)
    return known[id(module)]


def _rebuilt(
    module: nn.Module,
    homes: Mapping[int, flax.core.Scope],
    known: dict[int, nn.Module],
) -> nn.Module:
    """Bind a module to its scope; one without gets it from the layer, as in Flax."""
    if id(module) not in known:
        given = _mapped(module, lambda below: _rebuilt(below, homes, known))
        home = homes.get(id(module))
        known[id(module)] = module.clone(parent=home, **given)
    return known[id(module)]


def _at(name: str, tree: Any) -> Any:
    return tree[name] if name else tree


def _variables(name: str, params: Any, state: Any) -> dict[str, Any]:
    rest = {
        key: value
        for key, value in _at(name, state).items()
        if not key.startswith(("/", "rng_"))
    }
    own = {k: v for k, v in _at(name, params).items() if not k.startswith("/")}
    return _plain({"params": own, **rest} if own else rest)


def _scope(frame: ScopeFrame, variables: Any, state: Any) -> flax.core.Scope:
    keys = state.get("rng_keys", {})
    scope = flax.core.Scope(
        variables,
        {name: LazyRng(key, frame.folds[name]) for name, key in keys.items()},
        frame.path[-1] if frame.path else None,
        frame.mutable,
        None,
        path=frame.path,
        flags=frame.flags,
    )
    for place, count in state.get("rng_counters", {}).items():
        *names, stream = place.split("/")
        counters: Any = scope.rng_counters
        for child in names:
            # The sentinel by which Flax 0.12 finds the counters of child scopes.
            counters = counters.setdefault((child_rng_token, child), {})
        counters[stream] = count
    return scope


def _counters(tree: Mapping[Any, Any], above: str = "") -> Iterator[tuple[str, int]]:
    """List RNG counters by where they are: "dropout", "Dense_0/dropout"."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _counters(value, f"{above}{key[1]}/")
        else:
            yield f"{above}{key}", value


def _plain(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _plain(value) if isinstance(value, Mapping) else value
        for key, value in tree.items()
    }


@contextlib.contextmanager
def entered(layer: nn.Module, method: str) -> Iterator[None]:
    """Let modules be built in the body as in a compact method of a bound layer.

    They are children of the layer and find its parameters by name; each that is
    reused so is told at INFO, once. A call of the layer itself starts afresh. Where
    the method is not compact, nothing changes: there Flax builds children in `setup`.
    """
    if not hasattr(inspect.unwrap(getattr(type(layer), method)), "compact"):
        yield
        return
    # What Flax 0.12 does around such a method, and has no public way for.
    state, stack = layer._state, nn.module._context.module_stack  # noqa: SLF001
    before = state.in_compact_method
    stack.append(layer)
    state.in_compact_method = True
    try:
        with nn.intercept_methods(_Body(layer)):
            yield
    finally:
        state.in_compact_method = before
        state.reset()
        stack.remove(layer)


class _Body:
    """Sees the calls made in the body of an entered layer."""

    def __init__(self, layer: nn.Module) -> None:
        self._layer = layer
        self._told: set[str] = set()
        self._inside = False

    def __call__(
        self,
        proceed: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        context: nn.module.InterceptorContext,
    ) -> Any:
        module = context.module
        if self._inside or module.scope is None:
            return proceed(*args, **kwargs)
        if module is self._layer:
            with self._afresh():
                return proceed(*args, **kwargs)
        output = proceed(*args, **kwargs)
        if self._is_ours(module):
            self._tell(module.scope)
        return output

    def _is_ours(self, module: nn.Module) -> bool:
        above = module.parent
        while isinstance(above, nn.Module) and above is not self._layer:
            above = above.parent
        return above is self._layer

    @contextlib.contextmanager
    def _afresh(self) -> Iterator[None]:
        """Let the layer number its children from zero: the body is no part of it."""
        state = self._layer._state  # noqa: SLF001 - as in `entered`
        cursor, state.autoname_cursor = state.autoname_cursor, {}
        object.__setattr__(self._layer, "scope", _scope_of(self._layer).rewound())
        self._inside = True
        try:
            yield
        finally:
            self._inside = False
            state.autoname_cursor = cursor

    def _tell(self, scope: flax.core.Scope) -> None:
        for name, collections in scope.reservations.items():
            place = "/".join((*scope.path, name))
            if "params" in collections and place not in self._told:
                self._told.add(place)
                _log.info("reused parameter %s", place)
