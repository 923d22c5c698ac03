"""A model, Linen or NNX, as pure functions of its variables."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import flax.linen as nn
import jax
from flax import nnx

from theseus_track.jobs.state import Variables

__all__ = ["Forward", "Model", "Pure", "pure"]

Model = nn.Module | Callable[[nnx.Rngs], nnx.Module]
"""An unbound Linen module, or a function that makes an NNX module."""

Forward = Callable[[Any], Any]
"""Calls the model that it is given, ready to be called, and returns what it likes."""

_STATE = "state"


class Pure(Protocol):
    """What a training needs of a model."""

    def init(
        self, forward: Forward, keys: Mapping[str, jax.Array]
    ) -> tuple[Variables, Variables]:
        """Draw the parameters; return them and the other variables.

        Args:
            forward: Calls the model; Linen finds its parameters so.
            keys: A key for each random stream, "params" among them.
        """

    def train(
        self,
        forward: Forward,
        params: Variables,
        others: Variables,
        keys: Mapping[str, jax.Array],
    ) -> tuple[Any, Variables]:
        """Run forward in training; return its result and the variables it changed."""

    def evaluate(self, forward: Forward, variables: Variables) -> Any:
        """Run forward in evaluation; return its result, keep no change."""


def pure(model: Model) -> Pure:
    """Return the pure functions of a model."""
    return _Linen(model) if isinstance(model, nn.Module) else _NNX(model)


class _Linen:
    """A Linen module: its variables are collections."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model

    def init(
        self, forward: Forward, keys: Mapping[str, jax.Array]
    ) -> tuple[Variables, Variables]:
        variables = dict(nn.init(forward, self._model)(dict(keys)))
        return variables.pop("params", {}), variables

    def train(
        self,
        forward: Forward,
        params: Variables,
        others: Variables,
        keys: Mapping[str, jax.Array],
    ) -> tuple[Any, Variables]:
        apply = nn.apply(forward, self._model, mutable=list(others))
        found, changed = apply({"params": params, **others}, rngs=dict(keys))
        return found, dict(changed)

    def evaluate(self, forward: Forward, variables: Variables) -> Any:
        return nn.apply(forward, self._model)(variables)


class _NNX:
    """An NNX module: its variables are its Params, and the state of everything else.

    The random streams are part of that state, and count on by themselves.
    """

    def __init__(self, make: Callable[[nnx.Rngs], nnx.Module]) -> None:
        self._make = make

    def init(
        self,
        forward: Forward,  # noqa: ARG002 (NNX has its parameters when it is made)
        keys: Mapping[str, jax.Array],
    ) -> tuple[Variables, Variables]:
        model = self._make(nnx.Rngs(keys["params"], **keys))
        _, params, others = _split(model)
        return params, {_STATE: others}

    def train(
        self,
        forward: Forward,
        params: Variables,
        others: Variables,
        keys: Mapping[str, jax.Array],  # noqa: ARG002 (its own streams go on)
    ) -> tuple[Any, Variables]:
        model = self._merge(params, others)
        model.train()
        found = forward(model)
        return found, {_STATE: _split(model)[2]}

    def evaluate(self, forward: Forward, variables: Variables) -> Any:
        model = self._merge(variables["params"], variables)
        model.eval()
        return forward(model)

    def _merge(self, params: Variables, others: Variables) -> nnx.Module:
        # Copied: what was split outside of jax.grad cannot be changed inside of it.
        model: nnx.Module = nnx.merge(self._graph, params, others[_STATE], copy=True)
        return model

    @functools.cached_property
    def _graph(self) -> Any:
        # The streams hold keys, whatever their seed.
        made = nnx.eval_shape(lambda: self._make(nnx.Rngs(0)))
        return _split(made)[0]


def _split(model: nnx.Module) -> tuple[Any, Any, Any]:
    """Return the graph of a module, its Params, and all its other state."""
    parts: Any = nnx.split(model, nnx.Param, ...)
    graph, params, others = parts
    return graph, params, others
