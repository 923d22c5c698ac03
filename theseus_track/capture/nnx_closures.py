"""Naming the NNX node that a traced function changed and was not given."""

import functools
import inspect
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from flax import nnx
from flax.errors import TraceContextError

from theseus_track.capture.nnx_names import graph_nodes, is_node

__all__ = ["closed_over"]


def closed_over(error: BaseException, fn: Callable[..., Any]) -> str:
    """Say which graph node a function closes over, if it failed to change one.

    Args:
        error: What tracing the function raised; NNX does not say which node it was.
        fn: The function.

    Returns:
        A sentence; empty if the error is another one.
    """
    if not isinstance(error, TraceContextError):
        return ""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for node in _refused(frames):
        for key, value in _visible(frames):
            for place, part in _parts(value):
                if part is node:
                    what = ".".join((key, *place))
                    return (
                        f"The function changes {what} ({type(node).__name__}), which "
                        f"it closes over ({key}: {type(value).__name__}). Give {key} "
                        "to it as an argument."
                    )
    known = ", ".join(_closed_over(fn)) or "a graph node"
    return (
        f"The function changes the state of what it closes over ({known}). Give that "
        "to it as an argument."
    )


def _refused(frames: list[FrameType]) -> Iterator[Any]:
    """Find the node whose method refused the change: the innermost `self`."""
    for frame in reversed(frames):
        node = frame.f_locals.get("self")
        if is_node(node):
            yield node


def _visible(frames: list[FrameType]) -> Iterator[tuple[str, Any]]:
    """List what the functions on the way saw by name, the outermost first."""
    for frame in frames:
        code = frame.f_code
        yield from list(frame.f_locals.items())
        for key in code.co_names:
            if key in frame.f_globals:
                yield key, frame.f_globals[key]


def _parts(value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """List the nodes of a value with where they are in it."""
    containers = isinstance(value, dict | list | tuple)
    for root in graph_nodes(value) if containers or is_node(value) else ():
        for path, part in nnx.iter_graph(root, graph=True):
            yield tuple(map(str, path)), part


def _closed_over(fn: Any) -> list[str]:
    if isinstance(fn, functools.partial):
        given = {f"argument {i}": value for i, value in enumerate(fn.args)}
        return _described({**given, **fn.keywords}) + _closed_over(fn.func)
    fn = inspect.unwrap(fn)
    owner = fn if is_node(fn) else getattr(fn, "__self__", None)
    if not inspect.isfunction(fn := getattr(fn, "__func__", fn)):
        return _described({"self": owner})
    closure = inspect.getclosurevars(fn)
    return _described({"self": owner, **closure.globals, **closure.nonlocals})


def _described(values: dict[str, Any]) -> list[str]:
    return [
        f"{key}: {type(value).__name__}"
        for key, value in values.items()
        if graph_nodes(value)
    ]
