"""Finding the calls of a function without computing anything."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from theseus_track.capture.marked import Marked
from theseus_track.capture.observer import LiveCall
from theseus_track.capture.paths import CALL, Path
from theseus_track.capture.private import private_trace
from theseus_track.capture.program import Arguments, opened, read_arguments, trace
from theseus_track.capture.reap import Reaper
from theseus_track.capture.rule import Found
from theseus_track.capture.sites import Call, Target, check_target, matches
from theseus_track.capture.tap import Tag, attach

__all__ = ["Discoverer", "Discovery", "Query", "Stacks", "discover", "has_arrays"]


Stacks = tuple[tuple[int | None, int], ...]


@dataclass(frozen=True)
class Query:
    """Which calls are looked for."""

    target: Target | None
    methods: tuple[str, ...] = (CALL,)


@dataclass(frozen=True)
class Discovery:
    """What one trace showed.

    Attributes:
        calls: By query, every call by its path, in program order.
        blocked: By query and path, the primitive that can hand nothing out.
        stacks: By query and path, for each scan around the call, the outermost first:
            which name of the path stands for its layers, counted from 1 (None: none),
            and how many there are.
        turns: By query and path, how many calls were traced at the place before.
        called: Names of all module classes that were called.
        mute: By query, calls that returned no array, as "path (class)".
        broken: By query, what its predicate raised.
        apart: The program reuses a traced body, so that paths are right only if
            traces are kept apart (see `private_trace`).
    """

    calls: Mapping[str, dict[str, Call]]
    blocked: Mapping[str, dict[str, str]]
    stacks: Mapping[str, dict[str, Stacks]]
    turns: Mapping[str, dict[str, int]]
    called: Sequence[str]
    mute: Mapping[str, Sequence[str]]
    broken: Mapping[str, Exception]
    apart: bool


def discover(
    fn: Callable[..., Any],
    *args: Any,
    target: Target | None = None,
    methods: tuple[str, ...] = (CALL,),
    **kwargs: Any,
) -> dict[str, Call]:
    """Find the calls that a function makes, from shapes alone.

    Args:
        fn: A function or a `jax.jit` object.
        *args: Its arguments; arrays may be `jax.ShapeDtypeStruct`.
        target: A module class, a tuple of classes or a predicate on the module;
            None for every module.
        methods: Names of the methods whose calls count.
        **kwargs: Its keyword arguments.

    Returns:
        Every call by its path, in program order. The calls of a scanned stack are one
        path, `blocks/attn`, and `Call.layers` says how to name one of them. A call
        whose result does not reach the output may be left out: JAX removes it from
        compiled functions.

    Example:
        >>> import flax.linen as nn, jax, jax.numpy as jnp
        >>> model = nn.Sequential([nn.Dense(3), nn.relu, nn.Dense(2)])
        >>> x = jnp.ones((1, 4))
        >>> variables = jax.eval_shape(model.init, jax.random.key(0), x)
        >>> list(discover(model.apply, variables, x, target=nn.Dense))
        ['layers_0', 'layers_2']
    """
    if target is not None:
        check_target(target)
    whole = opened(fn)
    args, kwargs = whole.whole(args, kwargs)
    fn = whole.fn
    with read_arguments(args, kwargs) as arguments:
        found = Discoverer({"": Query(target, methods)}).run(fn, arguments)
    for error in found.broken.values():
        raise error
    return found.calls[""]


@dataclass(frozen=True, eq=False)
class _Hit:
    """A call as it is known while tracing, and the queries that it answers.

    Calls that answer none are there for their path: the names that all calls of one
    scan share say which module is the stack.
    """

    queries: tuple[str, ...]
    place: Path
    call: Call | None
    turn: int
    inside: tuple[Path, ...]


class Discoverer:
    """Answers several queries in one trace, for as many arguments as are asked for.

    Attributes:
        owner: Stands for the queries in JAX's trace caches.
        needs_view: False; nothing is called here.
        sees_marks: True; whoever asks for them finds tapped and sown values.
    """

    def __init__(self, queries: Mapping[str, Query]) -> None:
        self._queries = dict(queries)
        self._methods = {name for query in queries.values() for name in query.methods}
        self._called: dict[str, None] = {}
        self._mute: dict[str, dict[str, None]] = {name: {} for name in queries}
        self._broken: dict[str, Exception] = {}
        self.owner: object = object()
        self.needs_view = False
        self.sees_marks = True

    def run(
        self, fn: Callable[..., Any], arguments: Arguments, *, apart: bool = False
    ) -> Discovery:
        """Trace a function and answer the queries.

        Args:
            fn: A function or a `jax.jit` object.
            arguments: Of the call.
            apart: It is known already that traces must be kept apart.
        """
        if apart:
            return self._run_apart(fn, arguments)
        found = self._trace(fn, arguments, apart=False)
        shared = self._discovery(found, apart=False)
        if not _repeats(found):
            return shared
        # The calls may share a body and still be right: one module, called twice.
        separate = self._run_apart(fn, arguments)
        same = all(
            list(calls) == list(separate.calls[name])
            for name, calls in shared.calls.items()
        )
        return shared if same else separate

    def wants(self, module: Any, path: Path) -> bool:
        """See every call: also those that no query matches tell where scans are."""
        if isinstance(module, Marked):
            return bool(self._matching(module, path))
        if path.method in self._methods:
            self._called[type(module).__name__] = None
        return True

    def returned(self, call: LiveCall, output: Any) -> Any:
        """Tap the call's output; nothing but its shapes is kept."""
        names = self._matching(call.module, call.path)
        if not has_arrays(output):
            for name in names:
                self._mute[name][f"{str(call.path)!r} ({call.cls})"] = None
            return output
        found = _described(call, output) if names else None
        hit = _Hit(names, call.path, found, call.turn, call.inside)
        return attach(output, [], Tag(self.owner, hit, None))

    def _matching(self, module: Any, path: Path) -> tuple[str, ...]:
        names = []
        for name, query in self._queries.items():
            try:
                if path.method in query.methods and matches(query.target, module):
                    names.append(name)
            except Exception as error:  # noqa: BLE001 - a user's predicate; the others go on
                self._broken[name] = error.with_traceback(None)
        return tuple(names)

    def _run_apart(self, fn: Callable[..., Any], arguments: Arguments) -> Discovery:
        fresh = Discoverer(self._queries)
        return fresh._discovery(fresh._trace(fn, arguments, apart=True), apart=True)

    def _trace(
        self, fn: Callable[..., Any], arguments: Arguments, *, apart: bool
    ) -> tuple[Found, ...]:
        with private_trace(self.owner, self, apart=apart):
            program = trace(fn, arguments)
        return Reaper(self.owner).find(program.closed.jaxpr)

    def _discovery(self, found: Sequence[Found], *, apart: bool) -> Discovery:
        """Number the calls in program order."""
        depths = _depths(found)
        hits: dict[str, dict[str, tuple[Found, _Hit]]] = {n: {} for n in self._queries}
        for one in found:
            hit: _Hit = one.tag.label
            for name in hit.queries:
                path = hit.place
                while str(path) in hits[name]:
                    path = path.numbered(path.call + 1)
                hits[name][str(path)] = (one, hit)
        stacks = {
            name: {path: _stacks(one, depths) for path, (one, _) in own.items()}
            for name, own in hits.items()
        }
        calls: dict[str, dict[str, Call]] = {}
        for name, own in hits.items():
            ordered = _outer_first([(path, hit) for path, (_, hit) in own.items()])
            calls[name] = {
                path: _numbered(path, *own[path], stacks[name][path])
                for path in ordered
            }
        return Discovery(
            calls=calls,
            blocked={
                name: {
                    path: one.blocked for path, (one, _) in own.items() if one.blocked
                }
                for name, own in hits.items()
            },
            stacks=stacks,
            turns={
                name: {path: hit.turn for path, (_, hit) in own.items()}
                for name, own in hits.items()
            },
            called=sorted(self._called),
            mute={name: list(mute) for name, mute in self._mute.items()},
            broken=dict(self._broken),
            apart=apart,
        )


def _outer_first(calls: Sequence[tuple[str, _Hit]]) -> list[str]:
    """Order calls as they start: a tap shows when a call returns.

    Args:
        calls: Path and hit of each call, in the order in which they return.
    """
    groups: list[tuple[_Hit, list[str]]] = []
    for text, hit in calls:
        first = len(groups)
        while first and hit.place in groups[first - 1][0].inside:
            first -= 1
        inner = [path for _, paths in groups[first:] for path in paths]
        groups[first:] = [(hit, [text, *inner])]
    return [path for _, paths in groups for path in paths]


def has_arrays(value: Any) -> bool:
    """Tell whether a pytree holds a JAX array."""
    return any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(value))


def _repeats(found: Sequence[Found]) -> bool:
    """Tell whether one traced body stands at several places of the program."""
    asked = [one for one in found if one.tag.label.queries]
    return len({id(one.tag) for one in asked}) < len(asked)


def _described(call: LiveCall, output: Any) -> Call:
    return Call(
        path=str(call.path),
        cls=call.qualname,
        method=call.path.method,
        axes=(),
        inputs={name: _abstract(v) for name, v in call.arguments().items()},
        output=_abstract(call.inputs(output).output),
    )


def _numbered(path: str, found: Found, hit: _Hit, stacks: Stacks) -> Call:
    """Complete a call by what only the program tells."""
    assert hit.call is not None  # It answers a query.
    lengths = {depth: length for depth, length in stacks if depth is not None}
    names = range(1, len(hit.place.names) + 1)
    whole = [range(lengths[depth]) if depth in lengths else None for depth in names]
    layers = replace(Path.parse(path), layers=tuple(whole)) if lengths else None
    return replace(
        hit.call,
        path=path,
        axes=found.axes,
        layers=None if layers is None else str(layers),
    )


def _depths(found: Sequence[Found]) -> dict[int, int]:
    """Say for each scan how many names all the calls in it share, if any."""
    places: dict[int, list[tuple[str, ...]]] = {}
    for one in found:
        for loop in one.loops:
            places.setdefault(loop.scan, []).append(one.tag.label.place.names)
    shared = {scan: _shared(names) for scan, names in places.items()}
    return {scan: depth for scan, depth in shared.items() if depth}


def _shared(names: Sequence[tuple[str, ...]]) -> int:
    """Return how many names from the root down are the same in all of them."""
    columns = itertools.takewhile(
        lambda column: len(set(column)) == 1, zip(*names, strict=False)
    )
    return len(list(columns))


def _stacks(found: Found, depths: Mapping[int, int]) -> Stacks:
    """Say which name stands for each scan; of several, for the outermost."""
    taken: set[int] = set()
    stacks: list[tuple[int | None, int]] = []
    for loop in found.loops:
        depth = depths.get(loop.scan)
        own = None if depth in taken else depth
        # A scan of no iterations has no layers to choose from.
        own = own if loop.length else None
        stacks.append((own, loop.length))
        if own is not None:
            taken.add(own)
    return tuple(stacks)


def _abstract(value: Any) -> Any:
    """Replace arrays by their shapes and every other leaf by None."""
    try:
        return jax.tree.map(_shape, value)
    except (TypeError, ValueError):
        # JAX cannot flatten a dict whose keys cannot be sorted.
        return None


def _shape(leaf: Any) -> Any:
    if isinstance(leaf, jax.Array | np.ndarray):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    return None
