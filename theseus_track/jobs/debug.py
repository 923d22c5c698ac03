"""The debugger of a Trainer: layers of its model, stopped at a call."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, overload

import flax.linen as nn
from flax import nnx

from theseus_track.capture import Inputs, Isolated, Path, discover
from theseus_track.capture.isolate import Isolator
from theseus_track.capture.isolate_linen import entered
from theseus_track.errors import BadInput
from theseus_track.jobs.models import Model
from theseus_track.jobs.state import Variables
from theseus_track.jobs.steps import Batch, Loss, make_eval_step

__all__ = ["Debugged", "DebuggedLayers", "PathLike", "PathList", "debug", "find"]

PathLike = str | tuple[str, ...]
"""A path as text, or its names."""

PathList = list[str] | list[tuple[str, ...]] | list[PathLike]
"""Several; lists of one kind are named because a list fits its own kind only."""


class Debugged:
    """A layer as it was when it was called; made by `Trainer.debug`.

    It unpacks into the layer and its inputs, with `with` or without. The layer is
    bound and has a state of its own: call it, its methods and its children, print
    what they return; nothing reaches the Trainer, and nothing is drawn anew. Inside
    `with`, children of a compact Linen layer may be written as they are in it,
    `nn.Dense(8)(x)`: they find their parameters by name and never get new ones.

    Attributes:
        calls: All calls of the layer in the forward pass, in program order; the
            debugger stands at the first.
    """

    def __init__(self, calls: Sequence[Isolated]) -> None:
        self.calls = list(calls)
        self._layer = self.calls[0].layer
        self._stack = contextlib.ExitStack()
        self._closed = False

    @property
    def layer(self) -> Any:
        """The layer; what you do to it stays in it."""
        self._check_open()
        return self._layer

    @property
    def inputs(self) -> Inputs:
        """The arguments of the call by name, defaults applied; and the output."""
        self._check_open()
        return self.calls[0].inputs

    @property
    def output(self) -> Any:
        """What the call returned."""
        return self.inputs.output

    def close(self) -> None:
        """Let go of the layer and its arrays; closing twice does nothing."""
        if not self._closed:
            self._closed = True
            self._stack.close()
            self.calls.clear()
            self._layer = None

    def activate(self) -> contextlib.AbstractContextManager[Any]:
        """Let children be written as in the layer's compact method, in a `with`.

        Returns:
            What gives the layer, and leaves it open at the end of the block.
        """
        return self._activated()

    @contextlib.contextmanager
    def _activated(self) -> Iterator[Any]:
        layer = self.layer
        if not isinstance(layer, nn.Module):
            yield layer
            return
        with entered(layer, self.calls[0].origin.method):
            yield layer

    def __iter__(self) -> Iterator[Any]:
        """Unpack into layer and inputs."""
        return iter((self.layer, self.inputs))

    def __enter__(self) -> "Debugged":
        """Let children be written as in the layer's compact method."""
        self._stack.enter_context(self.activate())
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return "Debugged(closed)" if self._closed else f"Debugged({self.calls[0]!r})"

    def _repr_html_(self) -> str:
        return repr(self) if self._closed else self.calls[0]._repr_html_()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("This debugger is closed. Call debug(path) again.")


class DebuggedLayers(Sequence[Debugged]):
    """Several layers of one forward pass; made by `Trainer.debug` of a list.

    A sequence in the order of the paths, with `with` or without. Where children of a
    compact Linen layer are to be written, `activate()` says of which.
    """

    def __init__(self, layers: Iterable[Debugged]) -> None:
        self._layers = tuple(layers)

    @overload
    def __getitem__(self, index: int) -> Debugged: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Debugged]: ...
    def __getitem__(self, index: int | slice) -> Debugged | Sequence[Debugged]:
        """Return one of them, or some."""
        return self._layers[index]

    def __len__(self) -> int:
        """Count them."""
        return len(self._layers)

    def close(self) -> None:
        """Close all of them; closing twice does nothing."""
        for layer in self._layers:
            layer.close()

    def __enter__(self) -> "DebuggedLayers":
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"DebuggedLayers({', '.join(map(repr, self._layers))})"

    def _repr_html_(self) -> str:
        return "".join(layer._repr_html_() for layer in self._layers)


def find(
    model: Model, loss: Loss, variables: Variables, batch: Batch, cls: type
) -> list[tuple[str, ...]]:
    """Return where modules of a class are called; see `Trainer.find`."""
    if not (isinstance(cls, type) and issubclass(cls, nn.Module | nnx.Module)):
        raise TypeError(f"{cls!r} is no module class of Flax; give one, such as Dense.")
    calls = discover(make_eval_step(model, loss), variables, batch, target=cls)
    return list(dict.fromkeys(Path.parse(path).names for path in calls))


def debug(
    model: Model,
    loss: Loss,
    variables: Variables,
    batch: Batch,
    path: PathLike | PathList,
) -> Debugged | DebuggedLayers:
    """Stop at a call, or at several; see `Trainer.debug`."""
    several = isinstance(path, list)
    if several and not path:
        raise BadInput("The list of paths is empty; give at least one.")
    paths = [_path(one) for one in (path if several else [path])]
    # Not jitted: the layer's arrays are then those of the state, not copies, and what
    # is run again in a notebook runs as it did here.
    step = make_eval_step(model, loss)
    layers = [
        Debugged(calls) for calls in Isolator(step, paths).run((variables, batch), {})
    ]
    return DebuggedLayers(layers) if several else layers[0]


def _path(path: object) -> Path:
    if isinstance(path, str):
        return Path.parse(path)
    if isinstance(path, tuple) and all(isinstance(name, str) for name in path):
        return Path(path)
    raise BadInput(
        f"{path!r} is no path; give a text such as 'blocks_0/attn', or its names as "
        "a tuple; a list of such paths for several."
    )
