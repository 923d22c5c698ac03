"""What the demo looks at inside its GPT, and the training that looks."""

# ruff: noqa: ARG002 (an analysis takes the layer whether it needs it or not)

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from theseus_track.analysis import AnalysisBase, analysis
from theseus_track.demo.model import MLP, Block, SelfAttention
from theseus_track.demo.trainer import PretrainGPT
from theseus_track.jobs import job

__all__ = [
    "Activations",
    "AttentionPatterns",
    "GPTWithAnalysis",
    "LayerStatistics",
    "ResidualNorms",
]


@analysis("demo/gpt/activations")
class Activations(AnalysisBase, PretrainGPT):
    """What the first attention reads: one sample, its tokens by its features."""

    TARGET = SelfAttention
    NAME = "activations"

    def select(self, paths: list[str]) -> str:
        """Choose the first discovered attention module."""
        return paths[0]

    def analyze(self, layer: SelfAttention, inputs: Any) -> jax.Array:
        """Crop the input: [token, feature], float32."""
        x: jax.Array = inputs.x
        return x[0, :64, :128]

    def plot(self, values: np.ndarray) -> object:
        """Draw it as a heatmap."""
        return self.heatmap(values, xlabel="Feature", ylabel="Token")


@analysis("demo/gpt/attention")
class AttentionPatterns(AnalysisBase):
    """Where each head of the last block looks, for one sample."""

    TARGET = SelfAttention
    NAME = "attention"
    UNORDERED = ("head",)

    def select(self, paths: list[str]) -> str:
        """Choose the last block's attention."""
        return paths[-1]

    def analyze(self, layer: SelfAttention, inputs: Any) -> jax.Array:
        """Recompute the weights: [head, query, key], rows sum to 1."""
        # Cropped first: the other samples would be computed for nothing.
        return layer.weights(inputs.x[:1])[0]

    def plot(self, values: np.ndarray) -> object:
        """Draw one panel for each head, on one scale."""
        return self.heatmap(
            values,
            robust=True,
            title="Attention of the last block, one panel for each head",
            xlabel="Attended token",
            ylabel="Token",
        )


@analysis("demo/gpt/residual-norms")
class ResidualNorms(AnalysisBase):
    """How long the residual stream's vectors are after each block, by position."""

    TARGET = Block
    NAME = "residual_norms"

    def select(self, paths: list[str]) -> list[str]:
        """Choose every block."""
        return paths

    def analyze(self, layer: Block, inputs: Any) -> jax.Array:
        """Average the Euclidean norm over the batch: [token], float32."""
        output: jax.Array = inputs.output
        norms: jax.Array = jnp.linalg.norm(output, axis=-1)
        return norms.mean(axis=0)

    def plot(self, values: dict[str, np.ndarray]) -> object:
        """Draw one line for each block."""
        norms = np.stack(list(values.values()))
        return self.line(
            x=np.tile(np.arange(norms.shape[1]), len(norms)),
            y=norms.ravel(),
            hue=np.repeat(list(values), norms.shape[1]),
            xlabel="Position",
            ylabel="Norm of the residual",
        )


@analysis("demo/gpt/layer-statistics")
class LayerStatistics(AnalysisBase):
    """Mean, spread and extent of what every attention and MLP adds: a table."""

    TARGET = (SelfAttention, MLP)
    NAME = "layer_statistics"

    def select(self, paths: list[str]) -> list[str]:
        """Choose every attention and MLP."""
        return paths

    def analyze(self, layer: SelfAttention | MLP, inputs: Any) -> dict[str, jax.Array]:
        """Reduce the output to scalars, float32."""
        output: jax.Array = inputs.output
        return {
            "mean": output.mean(),
            "std": output.std(),
            "largest": jnp.abs(output).max(),
        }

    def plot(self, values: dict[str, dict[str, np.ndarray]]) -> object:
        """Return the table: a row for each layer."""
        return {
            path: {name: round(float(value), 5) for name, value in row.items()}
            for path, row in values.items()
        }


@job("demo/gpt/train-with-analysis")
class GPTWithAnalysis(PretrainGPT):
    """PretrainGPT that looks inside itself at each evaluation."""

    ANALYSIS = (Activations, AttentionPatterns, ResidualNorms, LayerStatistics)
