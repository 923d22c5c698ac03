"""Many edits of one function, compiled together: a grid of path by mask."""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from theseus_track.capture.discover import discover
from theseus_track.capture.edit import edit
from theseus_track.capture.isolate import Isolator
from theseus_track.capture.isolated import Isolated
from theseus_track.capture.paths import Path
from theseus_track.capture.program import read_arguments
from theseus_track.capture.rules import Change, patch, zero
from theseus_track.errors import (
    BadInput,
    UnreachedCall,
    UnsupportedProgram,
    describe_unknown,
)

__all__ = ["patches", "sweep"]


def sweep(
    fn: Callable[..., Any],
    paths: Iterable[str] | Mapping[str, Change],
    masks: Any = None,
    *,
    axis: int = -1,
    parts: int | None = None,
    at_once: int | None = None,
) -> Callable[..., Any]:
    """Make a function that runs every edit of a grid, in one compilation.

    Args:
        fn: A function or a `jax.jit` object.
        paths: Of the calls, to ablate them; or by path the rule to apply, such as
            what `patches` returns.
        masks: What is edited, [mask, element] along the axis, as bools or numbers
            from 0 to 1; None for each element alone.
        axis: Of the output (or of the input that a rule is on): the position, or the
            unit.
        parts: Count in so many equal parts of the axis, such as its heads.
        at_once: How many of the edited runs go through the model together; None for
            all, which needs the memory for all.

    Returns:
        A function with the signature of `fn` that returns `fn`'s output with two more
        axes in front, [path, mask]. State that `fn` changes stays as it was.

    Raises:
        BadInput: When there are no paths, or the masks do not fit.
        UnreachedCall: At the call, when the function makes no such call.

    Example:
        >>> import flax.linen as nn, jax, jax.numpy as jnp
        >>> from theseus_track.capture import sweep
        >>> model = nn.Sequential([nn.Dense(2, use_bias=False), nn.Dense(1)])
        >>> x = jnp.ones((1, 4))
        >>> variables = model.init(jax.random.key(0), x)
        >>> total = lambda variables, x: model.apply(variables, x).sum()
        >>> ablated = sweep(total, ["layers_0"])(variables, x)
        >>> ablated.shape  # One call, two units.
        (1, 2)
    """
    rules = dict(paths) if isinstance(paths, Mapping) else dict.fromkeys(paths, zero)
    if not rules:
        raise BadInput("A sweep needs at least one path.")

    def swept(*args: Any, **kwargs: Any) -> Any:
        own = masks
        if own is None:
            sizes = {
                parts or _size(fn, p, r, axis, args, kwargs) for p, r in rules.items()
            }
            if len(sizes) > 1:
                raise BadInput(
                    f"The calls have {sorted(sizes)} elements along axis {axis}; give "
                    "masks, parts, or calls of one shape."
                )
            own = jnp.eye(sizes.pop(), dtype=bool)
        grid = jnp.asarray(own)
        if grid.ndim != 2:
            raise BadInput(f"masks must be [mask, element], not of shape {grid.shape}.")
        with read_arguments(args, kwargs) as arguments:

            def one(arrays: list[Any], which: Any) -> Any:
                path, mask = which
                inner, named = arguments.restore(arrays)
                gates = [_gate(mask, path == number) for number in range(len(rules))]
                gated = {
                    place: rule.at(gate, axis, parts=parts)
                    for (place, rule), gate in zip(rules.items(), gates, strict=True)
                }
                return edit(fn, gated)(*inner, **named)

            def run(grid: Any, arrays: list[Any]) -> Any:
                count, rows = len(rules), grid.shape[0]
                which = (
                    jnp.repeat(jnp.arange(count), rows),
                    jnp.tile(grid, (count, 1)),
                )
                each = functools.partial(one, arrays)
                if at_once is None:
                    flat = jax.vmap(each)(which)
                else:
                    flat = jax.lax.map(each, which, batch_size=at_once)
                return jax.tree.map(
                    lambda x: x.reshape(count, rows, *x.shape[1:]), flat
                )

            return jax.jit(run)(grid, arguments.arrays)

    return swept


def _gate(mask: Any, chosen: Any) -> Any:
    return jnp.where(chosen, mask, jnp.zeros_like(mask))


def patches(
    fn: Callable[..., Any], paths: Iterable[str]
) -> Callable[..., dict[str, Change]]:
    """Make a function that takes calls of a run to patch them into another.

    Args:
        fn: A function or a `jax.jit` object.
        paths: Of the calls.

    Returns:
        A function of `fn`'s arguments that runs it once and returns, by path, the
        rule that makes the output there what it is in this run.

    Raises:
        UnsupportedProgram: At the call, when a path stands for several calls.
    """
    listed = list(paths)

    def taken(*args: Any, **kwargs: Any) -> dict[str, Change]:
        isolator = Isolator(fn, [Path.parse(path) for path in listed])
        found = isolator.run(args, kwargs)
        return {
            p: patch(_only(p, calls)) for p, calls in zip(listed, found, strict=True)
        }

    return taken


def _only(path: str, calls: list[Isolated]) -> Isolated:
    if len(calls) > 1:
        raise UnsupportedProgram(
            f"{path!r} stands for {len(calls)} calls; patch one of them: "
            f"{', '.join(call.path for call in calls[:10])}."
        )
    return calls[0]


def _size(
    fn: Callable[..., Any],
    path: str,
    rule: Change,
    axis: int,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> int:
    """Return how many elements the first array at a path has along an axis."""
    parsed = Path.parse(path)
    calls = discover(fn, *args, methods=(parsed.method,), **kwargs)
    stacked = str(parsed.stacked)
    if stacked not in calls:
        raise UnreachedCall(describe_unknown("call", path, calls))
    call = calls[stacked]
    place = call.output if rule.name is None else call.inputs[rule.name]
    size: int = jax.tree.leaves(place)[0].shape[axis]
    return size
