"""Which tokens a language model gets wrong, and at which positions."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import optax

from theseus_analyses.language import LanguageModelAnalysis
from theseus_track.analysis import analysis

__all__ = ["PerTokenLoss"]


@analysis("theseus/per_token_loss")
class PerTokenLoss(LanguageModelAnalysis):
    """Ask which predictions cost how much: the evaluation loss, taken apart.

    The cross entropy -log p(next token) in nats of every prediction: its mean by
    position over the batch, the first sample's token by token, and the WORST ones of
    the batch. Averaged over positions it is the loss of the batch.

    How to read it: a line that falls with the position says that the model uses its
    context; a flat one, that it does not. The strip shows the losses in the text.

    Cost: one softmax over the logits; returns 12 bytes a token and 16 a worst one.
    Traps: padding counts, unless the subclass masks it in `logits`.

    Attributes:
        WORST: How many of the costliest predictions are kept, >= 1.
    """

    WORST = 20

    def analyze(self, layer: Any, inputs: Any) -> dict[str, Any]:
        """Return the losses, float32, and where the worst are."""
        logits, targets = self.predicted(inputs)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, targets)
        count = min(self.WORST, losses.size)
        worst, where = jax.lax.top_k(losses.ravel(), count)
        return {
            "position": losses.mean(axis=0),
            "sample": losses[0],
            "tokens": targets[0],
            "worst": worst,
            "worst_sample": where // losses.shape[1],
            "worst_position": where % losses.shape[1] + 1,
            "worst_token": targets.ravel()[where],
        }

    def plot(self, values: Mapping[str, np.ndarray]) -> object:
        """Draw the line over positions and the first sample; list the worst."""
        losses = values["position"]
        mean = float(losses.mean(dtype=np.float64))
        names = ("worst_sample", "worst_position", "worst_token", "worst")
        table = [
            {
                "sample": int(sample),
                "position": int(position),
                "token": self.text(np.asarray([token]))[0],
                "loss": float(loss),
            }
            for sample, position, token, loss in zip(
                *(values[name] for name in names), strict=True
            )
        ]
        return {
            "position": self.line(
                x=np.arange(1, len(losses) + 1),
                y=losses,
                title=f"Loss by position (mean {mean:.4g} nats)",
                xlabel="Position",
                ylabel="Cross entropy (nats)",
            ),
            "sample": self.token_strip(
                values["sample"],
                self.text(values["tokens"]),
                title="Loss of each token of the first sample (nats)",
            ),
            "worst": table,
        }
