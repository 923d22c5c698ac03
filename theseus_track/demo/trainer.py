"""The demo's training: a GPT that learns to spell Python's help topics."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import ClassVar

import flax.linen as nn
import jax
import numpy as np
import optax

from theseus_track.demo.model import GPT
from theseus_track.demo.text import load_text
from theseus_track.jobs import Trainer, job

__all__ = ["GPTConfig", "PretrainGPT"]


@dataclasses.dataclass
class GPTConfig:
    """What PretrainGPT adds to a Trainer's hyperparameters, or sets otherwise.

    Attributes:
        context: Length of a sequence, in characters.
        layers: Number of blocks.
        features: Width of the residual stream, a multiple of `heads`.
        heads: Attention heads a block.
        dropout: Share dropped while training, in [0, 1).
        warmup: Steps in which the learning rate rises, at most a tenth of all.
    """

    steps: int = 600
    batch_size: int = 16
    learning_rate: float = 4e-3
    eval_every: int = 60
    checkpoint_every: int = 200
    context: int = 64
    layers: int = 4
    features: int = 128
    heads: int = 4
    dropout: float = 0.05
    warmup: int = 30


@job("demo/gpt/pretrain")
class PretrainGPT(Trainer):
    """Trains a small GPT to predict the next character of English text."""

    MODEL: ClassVar[Callable[..., nn.Module]] = GPT
    CONFIG: ClassVar[type | None] = GPTConfig

    def build(self) -> GPT:
        """Make the model that the hyperparameters describe."""
        return GPT(
            vocabulary=len(load_text().alphabet),
            context=self.args.context,
            layers=self.args.layers,
            features=self.args.features,
            heads=self.args.heads,
            dropout=self.args.dropout,
        )

    def batches(self, split: str) -> Iterator[dict[str, np.ndarray]]:
        """Yield windows at random places of the text, endlessly.

        Args:
            split: "train" or "val", two separate parts of the text.

        Yields:
            `tokens` and `targets`, the text one character further:
            [batch, token], int32, on host.
        """
        codes = load_text().split(split)
        rng = np.random.default_rng([self.args.seed, split == "val"])
        span = np.arange(self.args.context + 1)
        while True:
            starts = rng.integers(len(codes) - len(span), size=self.args.batch_size)
            window = codes[starts[:, None] + span]
            yield {"tokens": window[:, :-1], "targets": window[:, 1:]}

    def loss(
        self, model: GPT, batch: dict[str, jax.Array], *, train: bool
    ) -> jax.Array:
        """Return the mean cross-entropy of the next character, in nats."""
        logits = model(batch["tokens"], deterministic=not train)
        losses: jax.Array = optax.softmax_cross_entropy_with_integer_labels(
            logits, batch["targets"]
        )
        return losses.mean()

    def optimizer(self) -> optax.GradientTransformation:
        """Make AdamW with clipped gradients, a warm-up and a cosine decay."""
        steps, peak = self.args.steps, self.args.learning_rate
        rate = optax.warmup_cosine_decay_schedule(
            init_value=0.0,
            peak_value=peak,
            warmup_steps=min(self.args.warmup, steps // 10),
            decay_steps=steps,
            end_value=0.1 * peak,
        )
        return optax.chain(
            optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=0.1)
        )
