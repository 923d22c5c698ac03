"""What the benchmarks ask: the reference set, every layer, and attention weights."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from theseus_track.analysis import AnalysisBase
from theseus_track.capture import Path
from theseus_track.demo.model import MLP, SelfAttention

__all__ = ["SETS", "asked"]


@dataclasses.dataclass(frozen=True)
class _Layer:
    """Chooses the call in one layer, unrolled or in a stack; None: in every layer."""

    index: int | None

    def __call__(self, paths: list[str]) -> str | list[str]:
        if self.index is None:
            return paths
        if len(paths) > 1:
            return paths[self.index]
        names = Path.parse(paths[0]).names
        return str(Path(names, layers=(self.index, *(None for _ in names[1:]))))


def reference(layer: int | None) -> list[type[AnalysisBase]]:
    """Return the four analyses of the reference set, for a layer or for every one."""

    class InputCrop(AnalysisBase):
        TARGET = SelfAttention
        select = _Layer(layer)

        def analyze(self, layer: Any, inputs: Any) -> Any:
            return inputs.x[0, :64, :128]

    class MeanStd(AnalysisBase):
        TARGET = MLP
        select = _Layer(layer)

        def analyze(self, layer: Any, inputs: Any) -> Any:
            return jnp.stack([inputs.output.mean(), inputs.output.std()])

    class Norm(AnalysisBase):
        TARGET = MLP
        select = _Layer(layer)

        def analyze(self, layer: Any, inputs: Any) -> Any:
            return jnp.linalg.norm(inputs.x, axis=-1).mean(axis=0)

    class OutputCrop(AnalysisBase):
        TARGET = SelfAttention
        select = _Layer(layer)

        def analyze(self, layer: Any, inputs: Any) -> Any:
            return inputs.output[0, :64, :128]

    return [InputCrop, MeanStd, Norm, OutputCrop]


def weights(layer: int | None) -> list[type[AnalysisBase]]:
    """Return one analysis that needs what a fused softmax never writes out."""

    class AttentionWeights(AnalysisBase):
        TARGET = SelfAttention
        select = _Layer(layer)

        def analyze(self, layer: Any, inputs: Any) -> Any:
            attention: jax.Array = layer.weights(inputs.x)
            return attention[0, :, :64, :64]

    return [AttentionWeights]


SETS = ("reference", "every layer", "attention weights")


def asked(name: str, *, layer: int) -> list[type[AnalysisBase]]:
    """Return the analyses of one of the SETS; `layer` is the one looked at."""
    if name == "attention weights":
        return weights(layer)
    return reference(layer if name == "reference" else None)
