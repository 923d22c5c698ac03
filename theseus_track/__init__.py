"""See inside a JAX model while it trains: select a layer, analyze it, plot it.

The names that people type are exported here and loaded when first used, so that
importing the package starts no JAX backend and pulls in no plotting library.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from theseus_track.analysis.base import AnalysisBase
    from theseus_track.analysis.instrument import instrument
    from theseus_track.jobs import Trainer
    from theseus_track.run import open_run
    from theseus_track.store import Store, compare

__version__ = "0.1.0"

__all__ = [
    "AnalysisBase",
    "Store",
    "Trainer",
    "__version__",
    "compare",
    "instrument",
    "open_run",
]

_HOMES = {
    "AnalysisBase": "theseus_track.analysis",
    "Store": "theseus_track.store",
    "Trainer": "theseus_track.jobs",
    "compare": "theseus_track.store",
    "instrument": "theseus_track.analysis",
    "open_run": "theseus_track.run",
}


def __getattr__(name: str) -> object:
    """Load an exported name from its home on first use (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    """List the exported names besides the module's own."""
    return sorted({*globals(), *_HOMES})
