"""Whether a language model is right as often as it says."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from theseus_analyses.language import LanguageModelAnalysis
from theseus_track.analysis import analysis

__all__ = ["Calibration"]


@analysis("theseus/calibration")
class Calibration(LanguageModelAnalysis):
    """Ask how often the top prediction is right, by how sure the model was.

    Predictions are sorted into BINS of equal width by the probability of their top
    class. A bin has a count, a mean confidence and an accuracy; the expected
    calibration error is the mean of |accuracy - confidence|, weighted by count (Guo
    et al., 2017, "On Calibration of Modern Neural Networks", equation 3). The Brier
    score is the mean of sum_c (p_c - y_c)^2 (Brier, 1950).

    How to read it: bars on the diagonal are honest; below it the model is surer than
    it may be.

    Cost: one softmax over the logits; returns 12 bytes a bin.
    Traps: an error over few predictions is noise: look at the counts. A classifier
    other than a language model overrides `predicted`.

    Attributes:
        BINS: How many bins, >= 1.
    """

    BINS = 10

    def analyze(self, layer: Any, inputs: Any) -> dict[str, jax.Array]:
        """Return sums for each bin, each [bin], float32, and the Brier score."""
        logits, targets = self.predicted(inputs)
        classes = logits.shape[-1]
        chances = jax.nn.softmax(logits.reshape(-1, classes))
        targets = targets.ravel()
        sure = chances.max(axis=-1)
        right = chances.argmax(axis=-1) == targets
        bins = jnp.clip((sure * self.BINS).astype(jnp.int32), 0, self.BINS - 1)
        member = jax.nn.one_hot(bins, self.BINS)
        true = jax.nn.one_hot(targets, classes)
        return {
            "count": member.sum(axis=0),
            "confidence": sure @ member,
            "correct": right.astype(jnp.float32) @ member,
            "brier": ((chances - true) ** 2).sum(axis=-1).mean(),
        }

    def merge(self, a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
        """Add the bins of two batches, and average the score by their sizes."""
        share = a["count"].sum() / (a["count"].sum() + b["count"].sum())
        added = {name: a[name] + b[name] for name in a if name != "brier"}
        return added | {"brier": share * a["brier"] + (1 - share) * b["brier"]}

    def plot(self, values: Mapping[str, np.ndarray]) -> object:
        """Draw accuracy beside confidence for each bin that has predictions."""
        count = values["count"]
        some = count > 0
        confidence = values["confidence"][some] / count[some]
        accuracy = values["correct"][some] / count[some]
        error = float((count[some] * abs(accuracy - confidence)).sum() / count.sum())
        edges = np.arange(self.BINS)[some] / self.BINS
        names = [f"{low:.2g}-{low + 1 / self.BINS:.2g}" for low in edges]
        figure = self.bar(
            x=names * 2,
            y=np.concatenate([accuracy, confidence]),
            hue=["Accuracy"] * len(names) + ["Confidence"] * len(names),
            title=f"Calibration (expected error {error:.3g})",
            xlabel="Probability of the top prediction",
            ylabel="Mean over predictions",
        )
        scores = {
            "expected_calibration_error": error,
            "brier": float(values["brier"]),
            "predictions": int(count.sum()),
        }
        return {"reliability": figure, "scores": scores}
