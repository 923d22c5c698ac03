"""The pure functions of a training: initial state, one update, one evaluation."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import optax

from theseus_track.jobs.models import Model, pure
from theseus_track.jobs.state import TrainState, Variables

__all__ = [
    "Batch",
    "Loss",
    "Metrics",
    "initial_state",
    "make_eval_step",
    "make_train_step",
]

# Whatever pytree of arrays the Trainer's `batches` yields.
Batch = Any
Metrics = dict[str, jax.Array]


class Loss(Protocol):
    """A Trainer's `loss`."""

    def __call__(
        self, model: Any, batch: Batch, *, train: bool
    ) -> jax.Array | tuple[jax.Array, Mapping[str, jax.Array]]:
        """Return the scalar to minimise, alone or with more metrics."""


def initial_state(
    model: Model,
    loss: Loss,
    optimizer: optax.GradientTransformation,
    batch: Batch,
    *,
    key: jax.Array,
    streams: Sequence[str],
) -> TrainState:
    """Draw parameters.

    Args:
        model: The unbound Linen model, or what makes an NNX model.
        loss: The Trainer's loss, which calls the model.
        optimizer: The optimizer.
        batch: One batch; only shapes and dtypes matter.
        key: The key of the run.
        streams: Names of the random streams that the model draws from in training.

    Returns:
        The state before the first step.
    """
    params, others = pure(model).init(
        lambda bound: loss(bound, batch, train=False),
        _streams(key, ("params", *streams)),
    )
    return TrainState(
        step=jnp.zeros((), jnp.int32),
        params=params,
        model_state=others,
        opt_state=optimizer.init(params),
    )


def make_train_step(
    model: Model,
    loss: Loss,
    optimizer: optax.GradientTransformation,
    *,
    streams: Sequence[str],
) -> Callable[[TrainState, Batch, jax.Array], tuple[TrainState, Metrics]]:
    """Return `(state, batch, key) -> (state, metrics)`, one update, not jitted.

    The key is that of the run; each step folds its number into it.
    """
    forward = pure(model)

    def train_step(
        state: TrainState, batch: Batch, key: jax.Array
    ) -> tuple[TrainState, Metrics]:
        rngs = _streams(jax.random.fold_in(key, state.step), streams)

        def objective(params: Variables) -> tuple[jax.Array, tuple[Metrics, Variables]]:
            metrics, changed = forward.train(
                lambda bound: _metrics(loss(bound, batch, train=True)),
                params,
                state.model_state,
                rngs,
            )
            return metrics["loss"], (metrics, changed)

        grads, (metrics, changed) = jax.grad(objective, has_aux=True)(state.params)
        # optax 0.2.8 mixes dtypes, which JAX' strict promotion refuses.
        with jax.numpy_dtype_promotion("standard"):
            updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
            params = optax.apply_updates(state.params, updates)
        return state.replace(
            step=state.step + 1,
            params=params,
            model_state={**state.model_state, **changed},
            opt_state=opt_state,
        ), metrics

    return train_step


def make_eval_step(model: Model, loss: Loss) -> Callable[[Variables, Batch], Metrics]:
    """Return `(variables, batch) -> metrics`, a forward pass that changes nothing."""
    forward = pure(model)

    def eval_step(variables: Variables, batch: Batch) -> Metrics:
        metrics: Metrics = forward.evaluate(
            lambda bound: _metrics(loss(bound, batch, train=False)), variables
        )
        return metrics

    return eval_step


def _metrics(
    returned: jax.Array | tuple[jax.Array, Mapping[str, jax.Array]],
) -> Metrics:
    """Put what `loss` returned, with or without more metrics, into one dict."""
    if isinstance(returned, tuple):
        value, more = returned
        return {"loss": value, **more}
    return {"loss": returned}


def _streams(key: jax.Array, names: Sequence[str]) -> dict[str, jax.Array]:
    return dict(zip(names, jax.random.split(key, len(names)), strict=True))
