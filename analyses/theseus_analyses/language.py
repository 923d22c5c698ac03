"""What in the call of a language model is text: its tokens and its logits."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from theseus_analyses.targets import any_module
from theseus_track.analysis import AnalysisBase
from theseus_track.capture import Target

__all__ = ["LanguageModelAnalysis"]


class LanguageModelAnalysis(AnalysisBase):
    """A template for questions about what a language model predicts.

    It looks at the outermost call. A model with other conventions overrides `tokens`
    or `logits`; `text` names tokens in figures.
    """

    TARGET: ClassVar[Target] = any_module

    def tokens(self, inputs: Any) -> jax.Array:
        """Return what the model read, [batch, token], integers.

        By default the first input that is an array of integers with two axes.
        """
        arrays = (each for each in inputs.values() if hasattr(each, "dtype"))
        for array in arrays:
            if jnp.issubdtype(array.dtype, jnp.integer) and array.ndim == 2:
                return jnp.asarray(array)
        raise ValueError(
            "No input of the model is [batch, token] integers; its inputs are: "
            f"{', '.join(inputs)}. Override tokens(inputs) in a subclass of "
            f"{type(self).__name__}."
        )

    def logits(self, inputs: Any) -> jax.Array:
        """Return what the model predicts, [batch, token, vocabulary].

        By default its output, which must be an array with three axes.
        """
        output = inputs.output
        if getattr(output, "ndim", None) != 3:
            shape = getattr(output, "shape", type(output).__name__)
            raise ValueError(
                f"The model returns {shape}, not logits [batch, token, vocabulary]. "
                f"Override logits(inputs) in a subclass of {type(self).__name__}."
            )
        return output  # type: ignore[no-any-return]

    def predicted(self, inputs: Any) -> tuple[jax.Array, jax.Array]:
        """Return logits, and the tokens that really followed.

        Returns:
            [batch, token - 1, vocabulary], float32, and [batch, token - 1].

        Raises:
            ValueError: If logits and tokens do not belong together, or there is one
                token only.
        """
        logits, tokens = self.logits(inputs), self.tokens(inputs)
        if logits.shape[:2] != tokens.shape or tokens.shape[1] < 2:
            raise ValueError(
                f"Logits {logits.shape} for tokens {tokens.shape}: they must agree "
                "in batch and token, and there must be at least 2 tokens. Override "
                f"tokens or logits in a subclass of {type(self).__name__}."
            )
        return logits[:, :-1].astype(jnp.float32), tokens[:, 1:]

    def text(self, tokens: np.ndarray) -> list[str]:
        """Name tokens, [token], in figures; by default by their numbers."""
        return [str(token) for token in tokens]
