"""Taking calls out of a model, so that each can be made again alone."""

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from theseus_track.capture.discover import Discoverer, Discovery, Query, has_arrays
from theseus_track.capture.frameworks import nnx_in_use
from theseus_track.capture.isolated import Isolated
from theseus_track.capture.observer import LiveCall
from theseus_track.capture.origin import Frame, Origin
from theseus_track.capture.paths import CALL, Layers, Path
from theseus_track.capture.primitives import opened, used_inputs
from theseus_track.capture.private import private_trace
from theseus_track.capture.program import Arguments, Program, read_arguments, trace
from theseus_track.capture.reap import Reaper
from theseus_track.capture.rule import Found, Keep, Kept, Want
from theseus_track.capture.select import check_layers
from theseus_track.capture.tap import Tag, attach
from theseus_track.errors import (
    BadInput,
    UnreachedCall,
    UnsupportedProgram,
    describe_unknown,
)

__all__ = ["Isolator", "asked", "freeze", "isolate"]


def isolate(
    fn: Callable[..., Any], path: str, *, method: str = CALL
) -> Callable[..., Any]:
    """Take a call out of a function, with everything that it needs.

    Args:
        fn: A function or a `jax.jit` object that calls a Linen or NNX model.
        path: Of the layer, such as "blocks_0/attn"; "attn#1" is its second call only,
            "blocks[3]/attn" one layer of a scanned stack. `*` and `?` stand for parts
            of names, if only one path fits.
        method: The method called, if the path names none.

    Returns:
        A function of `fn`'s arguments that runs `fn` once and returns what was found:
        one call as an object, several as a list in program order. A layer in a loop
        or `vmap` is one call per iteration; one that sits in a branch that is not
        taken is left out. `fn`, its arguments and their state stay as they are.

    Raises:
        BadInput: When the path is malformed, or fits several paths.
        UnreachedCall: At the call, when the function makes no such call.
        UnsupportedProgram: At the call, when the call sits where nothing can be
            handed out.

    Example:
        >>> import flax.linen as nn, jax, jax.numpy as jnp
        >>> from theseus_track.capture import isolate
        >>> model = nn.Sequential([nn.Dense(3), nn.Dense(2)])
        >>> x = jnp.ones((1, 4))
        >>> variables = model.init(jax.random.key(0), x)
        >>> isolate(model.apply, "layers_1")(variables, x)
        Isolated('layers_1': Dense(inputs=float32[1, 3]) -> float32[1, 2])
    """
    wanted = asked(path, method)

    @functools.wraps(fn, updated=())
    def isolated(*args: Any, **kwargs: Any) -> Any:
        (calls,) = Isolator(fn, [wanted]).run(args, kwargs)
        return calls[0] if len(calls) == 1 else calls

    return isolated


def asked(text: str, method: str) -> Path:
    """Read a path whose method, if it names none, is another than `__call__`."""
    path = Path.parse(text)
    return replace(path, method=method) if path.method == CALL else path


class Isolator:
    """Takes the calls at several paths out of one forward pass.

    Args:
        fn: A function or a `jax.jit` object.
        paths: Where; a name may hold `*` and `?`.
    """

    needs_view = True

    def __init__(self, fn: Callable[..., Any], paths: Sequence[Path]) -> None:
        self._fn = fn
        self._paths = list(paths)
        self._places: set[Path] = set()
        self._owner = object()

    def run(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> list[list[Isolated]]:
        """Run the function once; return for each path its calls in program order."""
        with read_arguments(args, kwargs) as arguments:
            plan = self._plan(arguments)
            values = iter(plan.evaluate(*arguments.arrays))
        found, paths, taps = plan.found, plan.paths, plan.taps
        by_want = [{want: next(values) for want in own} for own in plan.keep]
        calls: list[list[Isolated]] = [[] for _ in paths]
        for tap, values_of in zip(taps, by_want, strict=True):
            for path, into in zip(paths, calls, strict=True):
                if _is_at(tap, path):
                    want = _want(tap, path, found)
                    into.extend(_unstacked(tap, path, want, values_of[want], found))
        for path, into in zip(paths, calls, strict=True):
            if not into:
                raise UnreachedCall(
                    f"The call {str(path)!r} was not made: the branch or loop that it "
                    "sits in was not entered with these arguments."
                )
        return calls

    def needs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[bool]:
        """Tell for each array of the arguments whether the calls depend on it.

        Nothing is computed; arrays may be `jax.ShapeDtypeStruct`.
        """
        with read_arguments(args, kwargs) as arguments:
            plan = self._plan(arguments)
            jaxpr, _ = opened(jax.make_jaxpr(plan.evaluate)(*arguments.arrays))
        return used_inputs(jaxpr)

    def _plan(self, arguments: Arguments) -> "_Plan":
        """Trace the function, and say what of it is to be taken out."""
        query = Query(None, tuple({path.method for path in self._paths}))
        found = Discoverer({"": query}).run(self._fn, arguments)
        paths = [_resolved(path, found) for path in self._paths]
        self._places = {path.base.stacked for path in paths}
        # Never shared with another trace, so that no number of a call matters.
        with private_trace(self._owner, self, apart=found.apart):
            program = trace(self._fn, arguments)
        reaper = Reaper(self._owner)
        taps = _numbered(reaper.find(program.closed.jaxpr))
        wants = [
            [_want(tap, path, found) for path in paths if _is_at(tap, path)]
            for tap in taps
        ]
        for tap, own in zip(taps, wants, strict=True):
            if own and tap.found.blocked:
                raise UnsupportedProgram(
                    f"The call {str(tap.path)!r} sits inside {tap.found.blocked}, "
                    "which can hand nothing out; isolate another call."
                )
        keep = tuple(tuple(dict.fromkeys(own)) for own in wants)
        return _Plan(found, paths, taps, keep, reaper, program)

    def wants(self, _module: Any, path: Path) -> bool:
        """Tell whether a call at this place is to be taken out."""
        return path in self._places

    def returned(self, call: LiveCall, output: Any) -> Any:
        """Tap everything that the call needs."""
        if not has_arrays(output):
            return output
        frame, content = freeze(call)
        names = tuple(content["inputs"])
        content["output"] = output
        leaves, tree = jax.tree.flatten(content)
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]
        rest = [None if isinstance(x, jax.Array) else x for x in leaves]
        cls = f"{type(call.module).__module__}.{type(call.module).__qualname__}"
        mark = _Mark(call.path, cls, names, frame, tree, rest, places)
        return attach(output, [leaves[i] for i in places], Tag(self._owner, mark, None))


@dataclass(frozen=True, eq=False)
class _Mark:
    """What a tap of ours stands for: a call without its arrays."""

    path: Path
    cls: str
    names: tuple[str, ...]
    frame: Frame
    tree: Any
    rest: list[Any]
    places: list[int]

    def restore(self, arrays: Sequence[Any]) -> dict[str, Any]:
        leaves = list(self.rest)
        for place, array in zip(self.places, arrays, strict=True):
            leaves[place] = array
        content: dict[str, Any] = jax.tree.unflatten(self.tree, leaves)
        return content


@dataclass(frozen=True)
class _Tap:
    """A tap and the path of its call, number included."""

    path: Path
    found: Found

    @property
    def mark(self) -> _Mark:
        mark: _Mark = self.found.tag.label
        return mark


@dataclass(frozen=True)
class _Plan:
    """A traced function and what is kept of it."""

    found: Discovery
    paths: list[Path]
    taps: list[_Tap]
    keep: Keep
    reaper: Reaper
    program: Program

    def evaluate(self, *arrays: Any) -> list[Kept]:
        closed = self.program.closed
        flags = (None,) * sum(map(len, self.keep))
        _, kept = self.reaper.evaluate(
            closed.jaxpr, closed.consts, arrays, self.keep, flags
        )
        return kept


def freeze(call: LiveCall) -> tuple[Frame, dict[str, Any]]:
    """Take a call that has just returned apart, in either framework."""
    if nnx_in_use():
        from flax import nnx  # noqa: PLC0415 - only where it is imported already

        if isinstance(call.module, nnx.Module):
            from theseus_track.capture import isolate_nnx  # noqa: PLC0415 - as above

            return isolate_nnx.freeze(call)
    from theseus_track.capture import isolate_linen  # noqa: PLC0415 - as above

    return isolate_linen.freeze(call)


def _numbered(found: Sequence[Found]) -> list[_Tap]:
    counts: Counter[Path] = Counter()
    taps = []
    for one in found:
        place: Path = one.tag.label.path
        taps.append(_Tap(place.numbered(counts[place]), one))
        counts[place] += 1
    return taps


def _resolved(path: Path, found: Discovery) -> Path:
    """Find what a path means among the calls there are."""
    known = found.calls[""]
    places = list(dict.fromkeys(Path.parse(text).base for text in known))
    fits = [place for place in places if path.base.fits(place)]
    if len(fits) > 1:
        listed = ", ".join(repr(str(place)) for place in fits[:10])
        raise BadInput(
            f"{str(path)!r} fits {len(fits)} paths: {listed}; give one of them."
        )
    if not fits:
        mute = found.mute[""]
        if any(f"{str(path)!r} (" in text for text in mute):
            raise UnreachedCall(
                f"The call {str(path)!r} returns no array, so that it cannot be "
                "taken out; isolate another one."
            )
        raise UnreachedCall(describe_unknown("call", str(path), known))
    chosen = replace(path, names=fits[0].names)
    stacked = str(chosen.stacked)
    if stacked not in known:
        raise UnreachedCall(describe_unknown("call", stacked, known))
    check_layers(chosen, found.stacks[""][stacked])
    return chosen


def _is_at(tap: _Tap, path: Path) -> bool:
    place = path.stacked
    return tap.path == place or (tap.path.base == place and place.call == 0)


def _want(tap: _Tap, path: Path, found: Discovery) -> Want:
    """Say which iterations are wanted, where each loop is told by one number."""
    wanted = (None, *path.layers)
    stacks = found.stacks[""][str(tap.path)]
    layers = tuple(wanted[depth or 0] if path.layers else None for depth, _ in stacks)
    return Want(tuple(one if isinstance(one, int) else None for one in layers))


def _unstacked(
    tap: _Tap, path: Path, want: Want, kept: Kept, found: Discovery
) -> Iterator[Isolated]:
    """Make one call of each iteration that was reached and is wanted."""
    stacks = found.stacks[""][str(tap.path)]
    loops = list(zip(stacks, want.layers, strict=True))
    # The scans come first; behind them what `vmap` and `shard_map` put in front.
    axes = tap.found.leaves[0].shape[: len(tap.found.axes)]
    sizes = [length for (_, length), chosen in loops if chosen is None]
    for index in np.ndindex(*sizes, *axes[len(stacks) :]):
        layers, others = _numbers(tap.path, loops, index)
        if not _chosen(layers, path.layers) or not _reached(kept, index):
            continue
        named = tuple(layers) if any(x is not None for x in layers) else ()
        origin = Origin(
            path=str(replace(tap.path, layers=named)),
            method=tap.path.method,
            cls=tap.mark.cls,
            names=tap.mark.names,
            index=others,
        )
        leaves = [leaf[index] for leaf in kept.leaves] if index else kept.leaves
        yield Isolated(origin, tap.mark.frame, tap.mark.restore(leaves))


def _numbers(
    path: Path, loops: Sequence[tuple[Any, Layers]], index: tuple[int, ...]
) -> tuple[list[int | None], tuple[int, ...]]:
    """Sort the numbers of an iteration: layers of the path's names, and others."""
    layers: list[int | None] = [None] * len(path.names)
    others: list[int] = []
    numbers = iter(index)
    for (depth, _), chosen in loops:
        number = chosen if isinstance(chosen, int) else next(numbers)
        if depth is None:
            others.append(number)
        else:
            layers[depth - 1] = number
    return layers, (*others, *numbers)


def _reached(kept: Kept, index: tuple[int, ...]) -> bool:
    if kept.valid is None:
        return True
    return bool(np.all(kept.valid[index[: kept.valid.ndim]]))


def _chosen(layers: Sequence[int | None], wanted: Sequence[Any]) -> bool:
    return all(
        one is None or (layer in one if isinstance(one, range) else layer == one)
        for layer, one in zip(layers, wanted, strict=False)
    )
