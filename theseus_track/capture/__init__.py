"""Take values out of the calls inside a traced function, as pure outputs.

What comes in: a function of JAX arrays, plain or jitted, and questions about the
calls of modules inside it. What goes out: the same function with the answers beside
its output. One forward pass, no host callback, no change to the function, its RNG
streams or its state. This layer knows nothing of analyses, runs or files.
"""

from theseus_track.capture import rules
from theseus_track.capture.discover import discover
from theseus_track.capture.edit import edit
from theseus_track.capture.gradients import grad_at
from theseus_track.capture.grid import Grid
from theseus_track.capture.inputs import Inputs
from theseus_track.capture.isolate import isolate
from theseus_track.capture.isolated import Isolated, load
from theseus_track.capture.marked import Sown, Tapped
from theseus_track.capture.paths import Path
from theseus_track.capture.reap import reap
from theseus_track.capture.sites import (
    Call,
    Captures,
    Fault,
    Site,
    SiteCapture,
    Target,
)
from theseus_track.capture.sweep import patches, sweep
from theseus_track.capture.tap import tap
from theseus_track.capture.watch import Watched, WatchTrace, watch

__all__ = [
    "Call",
    "Captures",
    "Fault",
    "Grid",
    "Inputs",
    "Isolated",
    "Path",
    "Site",
    "SiteCapture",
    "Sown",
    "Tapped",
    "Target",
    "WatchTrace",
    "Watched",
    "discover",
    "edit",
    "grad_at",
    "isolate",
    "load",
    "patches",
    "reap",
    "rules",
    "sweep",
    "tap",
    "watch",
]
