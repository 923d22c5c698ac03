"""A function in which the outputs of chosen calls are replaced."""

import functools
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from theseus_track.capture.discover import Discoverer, Query
from theseus_track.capture.inputs import bind, spread
from theseus_track.capture.jitted import is_jitted, traced_jaxpr
from theseus_track.capture.observer import LiveCall
from theseus_track.capture.paths import Path
from theseus_track.capture.private import private_trace
from theseus_track.capture.program import Arguments, read_arguments
from theseus_track.capture.recent import Recent
from theseus_track.capture.rules import Change
from theseus_track.errors import BadInput, UnreachedCall, describe_unknown

__all__ = ["edit"]

Rule = Callable[[Any, Any, Any], Any]


def edit(fn: Callable[..., Any], rules: Mapping[str, Rule]) -> Callable[..., Any]:
    """Make a function in which the outputs of some calls are replaced.

    Args:
        fn: A function or a `jax.jit` object.
        rules: By path, a function of (layer, inputs, output) that returns what the
            call returns instead, of the same structure, shapes and dtypes; or one of
            the ready ones in `rules`, which can also change an input. The
            layer is an isolated view, as in `watch`; all calls of a loop or `vmap`
            are one path, and all are edited.

    Returns:
        A function with the signature of `fn`. It can be compiled, differentiated
        and watched; `fn` itself is not changed.

    Raises:
        BadInput: When a path is malformed, or (at the call) when a rule returns
            another structure, shape or dtype.
        UnreachedCall: At the call, when the function makes no such call.

    Example:
        >>> import flax.linen as nn, jax, jax.numpy as jnp
        >>> from theseus_track.capture import edit
        >>> model = nn.Sequential([nn.Dense(3), nn.Dense(2)])
        >>> x = jnp.ones((1, 4))
        >>> variables = model.init(jax.random.key(0), x)
        >>> ablated = edit(model.apply, {"layers_1": lambda layer, inputs, y: y - y})
        >>> ablated(variables, x).tolist()
        [[0.0, 0.0]]
    """
    editing = _Editing(fn, {Path.parse(path): rule for path, rule in rules.items()})

    @functools.wraps(fn, updated=())
    def edited(*args: Any, **kwargs: Any) -> Any:
        plan = editing.plan(args, kwargs)
        editor = _Editor(plan.rules)
        # A plan in which the number of a call counts needs traces of its own.
        shared = is_jitted(fn) or not plan.apart
        owner = plan.owner if shared else object()
        with private_trace(owner, editor, apart=plan.apart):
            return fn(*args, **kwargs)

    return edited


@dataclass(frozen=True)
class _Plan:
    """Which calls are edited, for arguments that trace alike.

    Attributes:
        rules: By place, and how many calls are traced there before; None: all.
        apart: Traces must be kept apart.
        owner: Stands for all this in JAX's trace caches.
    """

    rules: Mapping[tuple[Path, int | None], Rule]
    apart: bool
    owner: object = field(default_factory=object)


class _Editing:
    """Finds the calls that rules are for."""

    def __init__(self, fn: Callable[..., Any], rules: Mapping[Path, Rule]) -> None:
        self._fn = fn
        self._rules = rules
        methods = tuple({path.method for path in rules})
        self._discoverer = Discoverer({"": Query(None, methods)})
        self._plans = Recent[_Plan](64)

    def plan(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Plan:
        """Return the plan for these arguments, made once for those that trace alike."""
        if is_jitted(self._fn):
            with private_trace(self._discoverer.owner, self._discoverer):
                traced: Hashable = traced_jaxpr(self._fn, args, kwargs)
        with read_arguments(args, kwargs) as arguments:
            key = traced if is_jitted(self._fn) else arguments.key()
            return self._plans.get(key, lambda: self._make(arguments))

    def _make(self, arguments: Arguments) -> _Plan:
        found = self._discoverer.run(self._fn, arguments)
        known = found.calls[""]
        for path in self._rules:
            if str(path) not in known:
                raise UnreachedCall(describe_unknown("call", str(path), known))
        repeated = {Path.parse(path).base for path in known if Path.parse(path).call}
        numbered = any(path.base in repeated for path in self._rules)
        if numbered and not found.apart:
            found = self._discoverer.run(self._fn, arguments, apart=True)
        turns = found.turns[""]
        rules = {
            (path.base, turns[str(path)] if path.base in repeated else None): rule
            for path, rule in self._rules.items()
        }
        return _Plan(rules, apart=numbered or found.apart)


class _Editor:
    """Replaces outputs and inputs while tracing, or while running eagerly."""

    needs_view = True

    def __init__(self, rules: Mapping[tuple[Path, int | None], Rule]) -> None:
        self._rules = rules
        self._places = {path for path, _ in rules}

    def wants(self, _module: Any, path: Path) -> bool:
        """Tell whether some rule is for a call at this place."""
        return path in self._places

    def given(
        self,
        module: Any,
        path: Path,
        turn: int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what the rule makes of the arguments, if it is for one of them."""
        rule = self._rule(path, turn)
        if not _on_input(rule):
            return args, kwargs
        method = getattr(type(module), path.method)
        arguments = bind(method, args, kwargs)
        new = rule.given(arguments)
        for name, value in arguments.items():
            _check(f"{name!r} of {str(path)!r}", type(module), new[name], value)
        return spread(method, new)

    def _rule(self, path: Path, turn: int) -> Any:
        return self._rules.get((path, None)) or self._rules.get((path, turn))

    def returned(self, call: LiveCall, output: Any) -> Any:
        """Return what the rule makes of the output."""
        rule = self._rule(call.path, call.turn)
        if rule is None or _on_input(rule):
            return output
        assert call.view is not None  # needs_view
        inputs = call.inputs(output)
        new = call.view.run(lambda layer: rule(layer, inputs, output))
        _check(repr(str(call.path)), type(call.module), new, output)
        return new


def _on_input(rule: Any) -> bool:
    return isinstance(rule, Change) and rule.name is not None


def _check(place: str, cls: type, new: Any, old: Any) -> None:
    if _shapes(new) != _shapes(old):
        raise BadInput(
            f"The edit of {place} ({cls.__name__}) returned {_told(new)}, but what is "
            f"there is {_told(old)}; return the same structure, shapes and dtypes."
        )


def _shapes(value: Any) -> Any:
    leaves, tree = jax.tree.flatten(value)
    return tree, [(np.shape(x), getattr(x, "dtype", type(x))) for x in leaves]


def _told(value: Any) -> str:
    def leaf(x: Any) -> str:
        return f"{getattr(x, 'dtype', type(x).__name__)}{list(np.shape(x))}"

    return str(jax.tree.map(leaf, value)).replace("'", "")
