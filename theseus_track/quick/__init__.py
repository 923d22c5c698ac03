"""Ask what a root holds, take a checkpoint, and run a job on it, interactively.

What comes in: a root, a job, and conditions that choose a step of a run. What goes
out: a Trainer that goes on from there, or an analysis whose results appear at that
step. Nothing is written before a job runs.
"""

from theseus_track.quick.analysis_job import AnalysisJob
from theseus_track.quick.isolated import debugger, isolate
from theseus_track.quick.node import Node
from theseus_track.quick.preview import Preview, preview
from theseus_track.quick.query import Query
from theseus_track.quick.session import Quick, init, quick

__all__ = [
    "AnalysisJob",
    "Node",
    "Preview",
    "Query",
    "Quick",
    "debugger",
    "init",
    "isolate",
    "preview",
    "quick",
]
