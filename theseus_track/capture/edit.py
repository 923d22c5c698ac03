"""A function in which the outputs of chosen calls are replaced."""

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from theseus_track.capture.discover import Discoverer, Query, Stacks
from theseus_track.capture.inputs import bind, spread
from theseus_track.capture.jitted import is_jitted, traced_jaxpr
from theseus_track.capture.observer import LiveCall
from theseus_track.capture.paths import Path
from theseus_track.capture.private import private_trace
from theseus_track.capture.program import Arguments, read_arguments, trace
from theseus_track.capture.reap import Reaper
from theseus_track.capture.recent import Recent
from theseus_track.capture.rule import Found, Want
from theseus_track.capture.rules import Change
from theseus_track.capture.select import check_layers, wanted_layers
from theseus_track.capture.swap import swap
from theseus_track.capture.tap import Tag
from theseus_track.errors import (
    BadInput,
    UnreachedCall,
    UnsupportedProgram,
    describe_unknown,
)

__all__ = ["edit"]

Rule = Callable[[Any, Any, Any], Any]


def edit(fn: Callable[..., Any], rules: Mapping[str, Rule]) -> Callable[..., Any]:
    """Make a function in which the outputs of some calls are replaced.

    Args:
        fn: A function or a `jax.jit` object.
        rules: By path, a function of (layer, inputs, output) that returns what the
            call returns instead, of the same structure, shapes and dtypes; or one of
            the ready ones in `rules`, which can also change an input. The
            layer is an isolated view, as in `watch`. All calls of a loop or `vmap`
            are one path, and all are edited; "blocks[3]/attn" and "blocks[2:5]/attn"
            are some layers of a scanned stack, and the others stay as they are to
            the last bit (the rule is computed for all, though). Where several rules
            meet, each gets what the one before made.

    Returns:
        A function with the signature of `fn`. It can be compiled, differentiated
        and watched; `fn` itself is not changed.

    Raises:
        BadInput: When a path is malformed, or (at the call) when a rule returns
            another structure, shape or dtype, or there is no such layer.
        UnreachedCall: At the call, when the function makes no such call.
        UnsupportedProgram: At the call, when layers are edited where iterations
            cannot be told from each other, such as in a while loop's condition.

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
        if editing.by_layer:
            return editing.run(args, kwargs)
        plan = editing.plan(args, kwargs)
        editor = _Editor(plan)
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
        stacks: By path, the scans around its call.
        apart: Traces must be kept apart.
        owner: Stands for all this in JAX's trace caches.
        compiled: The jitted functions of a program whose layers are edited.
    """

    rules: Mapping[tuple[Path, int | None], Sequence[tuple[Path, Rule]]]
    stacks: Mapping[Path, Stacks]
    apart: bool
    owner: object = field(default_factory=object)
    compiled: Recent[Any] = field(default_factory=lambda: Recent[Any](64))


class _Editing:
    """Finds the calls that rules are for."""

    def __init__(self, fn: Callable[..., Any], rules: Mapping[Path, Rule]) -> None:
        self._fn = fn
        self._rules = rules
        methods = tuple({path.method for path in rules})
        self._discoverer = Discoverer({"": Query(None, methods)})
        self._plans = Recent[_Plan](64)
        self.by_layer = any(path.layers for path in rules)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function with edits of some layers, which only a program tells."""
        plan = self.plan(args, kwargs)
        owner = object() if plan.apart else plan.owner
        with read_arguments(args, kwargs) as arguments:
            with private_trace(owner, _Editor(plan, owner), apart=plan.apart):
                program = trace(self._fn, arguments)
            reaper = Reaper(owner, plan.compiled)
            found = reaper.find(program.closed.jaxpr)
            results, _ = reaper.evaluate(
                program.closed.jaxpr,
                program.closed.consts,
                arguments.arrays,
                tuple((_want(one, plan),) for one in found),
                (None,) * len(found),
            )
            return arguments.finish(program.restore(results))

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
            stacked = str(path.stacked)
            if stacked not in known:
                raise UnreachedCall(describe_unknown("call", stacked, known))
            check_layers(path, found.stacks[""][stacked])
        repeated = {Path.parse(path).base for path in known if Path.parse(path).call}
        numbered = any(path.base.stacked in repeated for path in self._rules)
        if numbered and not found.apart:
            found = self._discoverer.run(self._fn, arguments, apart=True)
        turns, stacks = found.turns[""], found.stacks[""]
        rules: dict[tuple[Path, int | None], list[tuple[Path, Rule]]] = {}
        for path, rule in self._rules.items():
            place = path.base.stacked
            turn = turns[str(path.stacked)] if place in repeated else None
            rules.setdefault((place, turn), []).append((path, rule))
        around = {path: stacks[str(path.stacked)] for path in self._rules}
        return _Plan(rules, around, apart=numbered or found.apart)


def _want(found: Found, plan: _Plan) -> Want:
    """Say in which iterations a swap of ours takes place."""
    path: Path = found.tag.label
    stacks = plan.stacks[path]
    around = found.blocked
    if around is None and len(found.loops) != len(stacks):
        around = "a loop from which JAX has moved a part of it"
    if around is not None:
        raise UnsupportedProgram(
            f"The edit of {str(path)!r} sits inside {around}, where iterations cannot "
            f"be told from each other; edit all layers, {str(path.stacked)!r}."
        )
    return Want(wanted_layers(path, stacks))


class _Editor:
    """Replaces outputs and inputs while tracing, or while running eagerly."""

    needs_view = True

    def __init__(self, plan: _Plan, owner: object = None) -> None:
        self._rules = plan.rules
        self._places = {path for path, _ in plan.rules}
        self._owner = owner

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
        rules = [one for one in self._ruled(path, turn) if _on_input(one[1])]
        if not rules:
            return args, kwargs
        method = getattr(type(module), path.method)
        arguments = bind(method, args, kwargs)
        for where, rule in rules:
            new = rule.given(arguments)
            for name, value in arguments.items():
                _check(f"{name!r} of {str(path)!r}", type(module), new[name], value)
            name = rule.name
            changed = self._placed(where, new[name], arguments[name])
            arguments = {**arguments, name: changed}
        return spread(method, arguments)

    def _ruled(self, path: Path, turn: int) -> Sequence[tuple[Path, Any]]:
        return self._rules.get((path, None)) or self._rules.get((path, turn), ())

    def _placed(self, path: Path, new: Any, old: Any) -> Any:
        """Put what a rule made in its place, if it is for some layers only there."""
        return swap(old, new, Tag(self._owner, path, None)) if path.layers else new

    def returned(self, call: LiveCall, output: Any) -> Any:
        """Return what the rule makes of the output."""
        assert call.view is not None  # needs_view
        for path, rule in self._ruled(call.path, call.turn):
            if _on_input(rule):
                continue
            made = functools.partial(_made, rule, call.inputs(output), output)
            new = call.view.run(made)
            _check(repr(str(call.path)), type(call.module), new, output)
            output = self._placed(path, new, output)
        return output


def _made(rule: Rule, inputs: Any, output: Any, layer: Any) -> Any:
    return rule(layer, inputs, output)


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
