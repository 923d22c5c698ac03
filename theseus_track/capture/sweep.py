"""Many edits of one function, compiled together: a grid of path by mask."""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax

from theseus_track.capture.edit import edit
from theseus_track.capture.grid import Grid
from theseus_track.capture.isolate import Isolator
from theseus_track.capture.isolated import Isolated
from theseus_track.capture.paths import Path
from theseus_track.capture.program import read_arguments
from theseus_track.capture.rules import Change, patch, zero
from theseus_track.errors import UnsupportedProgram

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
    rules = paths if isinstance(paths, Mapping) else dict.fromkeys(paths, zero)
    grid = Grid(dict(rules), masks, axis, parts)

    def swept(*args: Any, **kwargs: Any) -> Any:
        with read_arguments(args, kwargs) as arguments:
            rows = grid.rows(fn, arguments)

            def one(arrays: list[Any], point: tuple[Any, Any]) -> Any:
                inner, named = arguments.restore(arrays)
                return edit(fn, grid.at(point))(*inner, **named)

            def run(rows: Any, arrays: list[Any]) -> Any:
                points = grid.points(rows)
                each = functools.partial(one, arrays)
                if at_once is None:
                    flat = jax.vmap(each)(points)
                else:
                    flat = jax.lax.map(each, points, batch_size=at_once)
                shape = (len(grid.rules), len(rows))
                return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), flat)

            return jax.jit(run)(rows, arguments.arrays)

    return swept


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
