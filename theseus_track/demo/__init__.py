"""A small GPT on real English, trained with analyses: the product in one command.

What comes in: a root and a number of steps. What goes out: a run in the ledger and
a summary of what is in it. Its model, Trainer and analyses are ordinary user code
over the public names, and good to inherit from.
"""

from theseus_track.demo.analyses import (
    Activations,
    AttentionPatterns,
    GPTWithAnalysis,
    LayerStatistics,
    ResidualNorms,
)
from theseus_track.demo.demo import DemoSummary, run_demo
from theseus_track.demo.model import GPT, MLP, Block, SelfAttention
from theseus_track.demo.text import Text, load_text
from theseus_track.demo.trainer import GPTConfig, PretrainGPT

__all__ = [
    "GPT",
    "MLP",
    "Activations",
    "AttentionPatterns",
    "Block",
    "DemoSummary",
    "GPTConfig",
    "GPTWithAnalysis",
    "LayerStatistics",
    "PretrainGPT",
    "ResidualNorms",
    "SelfAttention",
    "Text",
    "load_text",
    "run_demo",
]
