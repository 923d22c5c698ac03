"""Jobs: trainings and analyses that can be named, configured and run.

What comes in: a Trainer subclass, or a text that names one, and hyperparameters.
What goes out: a run in the ledger, its checkpoints, and the last metrics. Nobody
has to use the Trainer: `open_run` and `instrument` work in any loop.
"""

from theseus_track.jobs.config import TrainerConfig
from theseus_track.jobs.forward import forward_of
from theseus_track.jobs.job import job, kind_of
from theseus_track.jobs.load import load_job, load_recipe
from theseus_track.jobs.modules import ModuleOutline, outline
from theseus_track.jobs.recipe import Recipe, recipe_of
from theseus_track.jobs.settings import check_settings, parse_settings
from theseus_track.jobs.spec import spec_of
from theseus_track.jobs.state import TrainState
from theseus_track.jobs.trainer import Trainer

__all__ = [
    "ModuleOutline",
    "Recipe",
    "TrainState",
    "Trainer",
    "TrainerConfig",
    "check_settings",
    "forward_of",
    "job",
    "kind_of",
    "load_job",
    "load_recipe",
    "outline",
    "parse_settings",
    "recipe_of",
    "spec_of",
]
