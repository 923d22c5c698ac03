"""Ask yesterday's runs today's questions: each answer appears at its own step.

What comes in: a run or a directory of checkpoints, and analyses. What goes out:
results in the ledger, at the steps and times of the checkpoints, then in trackers.
What is there already is not done again, whenever the process was killed.
"""

from theseus_track.replay.announcing import announcement
from theseus_track.replay.backfill import backfill, follow
from theseus_track.replay.on_ray import Request, replay_on_ray
from theseus_track.replay.outcome import Outcome
from theseus_track.replay.plan import Planned, ReplayPlan, plan_replay
from theseus_track.replay.redraw import replot
from theseus_track.replay.redrawn import Redrawn
from theseus_track.replay.selection import Steps, parse_steps, slurm_part
from theseus_track.replay.target import Target, find_target

__all__ = [
    "Outcome",
    "Planned",
    "Redrawn",
    "ReplayPlan",
    "Request",
    "Steps",
    "Target",
    "announcement",
    "backfill",
    "find_target",
    "follow",
    "parse_steps",
    "plan_replay",
    "replay_on_ray",
    "replot",
    "slurm_part",
]
