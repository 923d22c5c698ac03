"""Other ways to the values of the reference set, as people write them today."""

from collections.abc import Callable
from typing import Any, cast

import flax.linen as nn
import jax
import numpy as np

from tests.benchmarks.model import GPT, loss_of, make_step
from tests.benchmarks.questions import asked
from theseus_track.analysis import instrument

__all__ = ["PEERS", "Prepared"]

Prepared = tuple[list[Any], Callable[[Any, Any], Any]]
"""Jitted programs, and `(variables, batch) -> what to wait for`, which runs them."""


def intermediates(model: GPT, layer: int) -> Prepared:
    """Return everything that every module returns, and reduce it on the host."""

    @jax.jit
    def program(variables: Any, batch: Any) -> Any:
        logits, kept = model.apply(
            variables,
            batch["tokens"],
            capture_intermediates=True,
            mutable=["intermediates"],
        )
        return loss_of(logits, batch), kept["intermediates"]

    def take(kept: Any, name: str) -> np.ndarray:
        if model.kind == "plain":
            return np.asarray(kept[f"blocks_{layer}"][name]["__call__"][0])
        return np.asarray(kept["blocks"][name]["__call__"][0])[layer]

    def run(variables: Any, batch: Any) -> Any:
        loss, kept = program(variables, batch)
        x, mlp = take(kept, "norm_attn"), take(kept, "mlp")
        norms = np.linalg.norm(take(kept, "norm_mlp"), axis=-1).mean(axis=0)
        crop = take(kept, "attn")[0, :64, :128]
        return loss, x[0, :64, :128], (mlp.mean(), mlp.std()), norms, crop

    return [program], run


def callbacks(model: GPT, layer: int) -> Prepared:
    """Send each value to the host while the program runs.

    In a scanned stack the same line runs in every layer.
    """
    received: list[Any] = []
    questions = [cls() for cls in asked("reference", layer=layer)]

    def intercept(proceed: Any, args: Any, kwargs: Any, context: Any) -> Any:
        output = proceed(*args, **kwargs)
        module = context.module
        here = model.kind != "plain" or module.path[:1] == (f"blocks_{layer}",)
        if context.method_name == "__call__" and here:
            inputs = _Seen(args[0], output) if args else None
            for question in questions:
                if isinstance(module, cast("type", question.TARGET)):
                    value = question.analyze(module, inputs)
                    jax.debug.callback(received.append, value)  # noqa: TID251 (a peer)
        return output

    @jax.jit
    def program(variables: Any, batch: Any) -> Any:
        with nn.intercept_methods(intercept):
            return make_step(model)(variables, batch)

    def run(variables: Any, batch: Any) -> Any:
        received.clear()
        loss = program(variables, batch)
        jax.effects_barrier()
        return loss

    return [program], run


class _Seen:
    """What an analysis reads of a call."""

    def __init__(self, x: Any, output: Any) -> None:
        self.x, self.output = x, output


def forwards(model: GPT, layer: int) -> Prepared:
    """Evaluate, then run the model once more for each analysis."""
    step = make_step(model)
    programs: list[Any] = [
        jax.jit(step),
        *(instrument(jax.jit(step), [a]) for a in asked("reference", layer=layer)),
    ]

    def run(variables: Any, batch: Any) -> Any:
        return [program(variables, batch) for program in programs]

    return programs, run


PEERS: dict[str, Callable[[GPT, int], Prepared]] = {
    "capture_intermediates + host": intermediates,
    "jax.debug.callback": callbacks,
    "a forward for each analysis": forwards,
}
