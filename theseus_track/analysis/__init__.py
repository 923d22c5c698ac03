"""Questions about a model: what to look at, what to compute, how to draw it.

What comes in: a user's eval step and AnalysisBase classes. What goes out: the
same step that also returns Values, their host form, and figures that carry the
data they show. This layer knows neither files nor trackers.
"""

from theseus_track.analysis.attention import (
    attention_adapter,
    attention_heads,
    is_attention,
)
from theseus_track.analysis.base import AnalysisBase
from theseus_track.analysis.check import Check
from theseus_track.analysis.config import Configured, compose_config
from theseus_track.analysis.fingerprint import draw_hash, measure_hash
from theseus_track.analysis.heads import Heads
from theseus_track.analysis.host import HostValue, to_host
from theseus_track.analysis.instrument import Instrumented, instrument, is_off
from theseus_track.analysis.plan import Plan, PlannedAnalysis
from theseus_track.analysis.registry import (
    analysis,
    lookup,
    place_of,
    register,
    registered_keys,
)
from theseus_track.analysis.selection import Selector, every, first, glob, last, nth
from theseus_track.analysis.values import Entry, Values

__all__ = [
    "AnalysisBase",
    "Check",
    "Configured",
    "Entry",
    "Heads",
    "HostValue",
    "Instrumented",
    "Plan",
    "PlannedAnalysis",
    "Selector",
    "Values",
    "analysis",
    "attention_adapter",
    "attention_heads",
    "compose_config",
    "draw_hash",
    "every",
    "first",
    "glob",
    "instrument",
    "is_attention",
    "is_off",
    "last",
    "lookup",
    "measure_hash",
    "nth",
    "place_of",
    "register",
    "registered_keys",
    "to_host",
]
