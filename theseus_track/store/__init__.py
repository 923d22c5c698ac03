"""The ledger: everything computed for a run, on disk, and the way to read it.

What comes in: new values, results, metrics and probes, through a `LedgerWriter`
that only ever appends to files of its own. What goes out: runs, series and
results by name and step, through `Store`. Reading needs neither JAX nor any
tracker, takes no lock and never writes. `docs/ledger.md` tells the format.
"""

from theseus_track.store.comparison import Comparison, compare
from theseus_track.store.curve import Curve
from theseus_track.store.damage import Damage
from theseus_track.store.entries import (
    Entry,
    NewPart,
    NewProbe,
    NewResult,
    NewValues,
)
from theseus_track.store.figure import StoredFigure
from theseus_track.store.probe import Probe
from theseus_track.store.removal import Holdings, holdings, remove
from theseus_track.store.result import Result
from theseus_track.store.root import resolve_root
from theseus_track.store.run import Run
from theseus_track.store.run_index import RunIndex
from theseus_track.store.run_state import state
from theseus_track.store.series import Series
from theseus_track.store.store import Store
from theseus_track.store.totals import Totals
from theseus_track.store.verification import verify
from theseus_track.store.writer import LedgerWriter

__all__ = [
    "Comparison",
    "Curve",
    "Damage",
    "Entry",
    "Holdings",
    "LedgerWriter",
    "NewPart",
    "NewProbe",
    "NewResult",
    "NewValues",
    "Probe",
    "Result",
    "Run",
    "RunIndex",
    "Series",
    "Store",
    "StoredFigure",
    "Totals",
    "compare",
    "holdings",
    "remove",
    "resolve_root",
    "state",
    "verify",
]
