"""Several calls at once, after the forward: their isolated views and their inputs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from theseus_track.capture.frameworks import nnx_in_use
from theseus_track.capture.isolate import freeze
from theseus_track.capture.isolated import Isolated
from theseus_track.capture.marked import Marked
from theseus_track.capture.observer import LiveCall
from theseus_track.capture.origin import Origin
from theseus_track.capture.paths import Path
from theseus_track.capture.private import private_trace
from theseus_track.capture.quiet import QUIET, Rewindable
from theseus_track.capture.rule import Found
from theseus_track.errors import BadInput

__all__ = ["enclosed_by", "held_bytes", "take_whole", "together"]


def take_whole(call: LiveCall, output: Any) -> Isolated:
    """Take a call that has just returned, with its layer as it was at the entry."""
    if isinstance(call.module, Marked):
        raise BadInput(f"TOGETHER looks at calls of modules, not at {call.cls}.")
    frame, content = freeze(call)
    del content["after"]  # Nobody asks what became of the state.
    content["output"] = output
    origin = Origin(
        path=str(call.path),
        method=call.path.method,
        cls=call.qualname,
        names=tuple(content["inputs"]),
    )
    return Isolated(origin, frame, content)


def enclosed_by(found: Found) -> str | None:
    """Name what keeps a call from leaving whole; None if nothing does.

    `vmap` does not: all calls have its axis, and are looked at example by example.
    """
    if found.loops:
        return f"a scan of {found.loops[0].length} iterations"
    if found.valid_shape is not None:
        return "a branch or a while loop"
    others = [axis for axis in found.axes if not axis.startswith("vmap")]
    return f"a program of each shard ({others[0]})" if others else None


def held_bytes(calls: Mapping[str, Isolated]) -> int:
    """Return what the inputs and outputs of calls weigh, in bytes."""
    held = [(call.content["inputs"], call.content["output"]) for call in calls.values()]
    leaves = [leaf for leaf in jax.tree.leaves(held) if _is_array(leaf)]
    return sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)


def together(
    calls: Mapping[str, Isolated],
    axes: Mapping[str, Sequence[str]],
    function: Callable[[list[Any], list[Any]], Any],
) -> Any:
    """Call a function with the layers and the inputs of several calls.

    Args:
        calls: By path, in program order.
        axes: By path, the axes that `vmap` put in front of all arrays of the call.
        function: Of the layers, each on an isolated view as at its own call, and
            their inputs, in the same order.

    Returns:
        What the function returns, with those axes in front.

    Raises:
        BadInput: When some calls are under other axes than the rest.
    """
    if len(set(map(tuple, axes.values()))) > 1:
        told = "; ".join(f"{path!r}: {', '.join(own)}" for path, own in axes.items())
        raise BadInput(
            f"its calls are not all under the same vmap ({told}). Select calls that "
            "are."
        )

    def run(taken: list[Isolated]) -> Any:
        with private_trace(_Nobody, _Nobody()):
            views = [_view(call.layer) for call in taken]
            inputs = [call.inputs for call in taken]
            return views[0].run(lambda _: _on_all(views, inputs, function))

    for _ in next(iter(axes.values())):
        run = jax.vmap(run)
    return run(list(calls.values()))


def _on_all(
    views: list[Any],
    inputs: list[Any],
    function: Callable[[list[Any], list[Any]], Any],
) -> Any:
    # Any of the layers may be called: each starts from its own entry.
    QUIET.view = _All([view for view in views if isinstance(view, Rewindable)])
    return function([view.entry for view in views], inputs)


class _All:
    """Brings several views back to their entries."""

    def __init__(self, views: list[Rewindable]) -> None:
        self._views = views

    def rewind(self) -> None:
        for view in self._views:
            view.rewind()


class _Nobody:
    """Wants no call: interceptors are on for the sake of the views alone."""

    needs_view = False

    def wants(self, _module: Any, _path: Path) -> bool:
        return False

    def returned(self, _call: LiveCall, output: Any) -> Any:
        return output


def _view(layer: Any) -> Any:
    if nnx_in_use():
        from flax import nnx as flax_nnx  # noqa: PLC0415 - only where it is imported

        if isinstance(layer, flax_nnx.Module):
            from theseus_track.capture import nnx  # noqa: PLC0415 - as above

            return nnx.View(layer)
    from theseus_track.capture import linen  # noqa: PLC0415 - beside the other

    return linen.View(layer)


def _is_array(leaf: object) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | jax.ShapeDtypeStruct)
