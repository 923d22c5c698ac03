"""Checkpoints: find them, say what is in them, and read what a forward pass needs.

What comes in: a directory that anybody's training has filled. What goes out: which
checkpoints it holds, their steps, times and leaves, and arrays on the devices that
are wanted. Nothing here creates, changes or deletes anything in such a directory.
"""

from theseus_track.checkpoints.checkpoint import Checkpoint, Found, Ignored
from theseus_track.checkpoints.find import StepRule, find_checkpoints
from theseus_track.checkpoints.leaves import Leaf
from theseus_track.checkpoints.match import Difference
from theseus_track.checkpoints.reading import Restored, describe, restore

__all__ = [
    "Checkpoint",
    "Difference",
    "Found",
    "Ignored",
    "Leaf",
    "Restored",
    "StepRule",
    "describe",
    "find_checkpoints",
    "restore",
]
