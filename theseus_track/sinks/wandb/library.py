"""The wandb package: whether it is installed, and the run that the user has."""

import importlib.util
import sys
from typing import Any

from theseus_track.errors import BadInput

__all__ = ["check_installed", "current_run"]


def check_installed() -> None:
    """Return when wandb can be imported; it is not imported here.

    Raises:
        BadInput: When it is not installed; the message has the command.
    """
    if importlib.util.find_spec("wandb") is None:
        raise BadInput(
            "The sink 'wandb' needs the package wandb, which is not installed. "
            "Install it: pip install 'theseus-track[wandb]'"
        )


def current_run() -> Any:  # a wandb.Run; wandb may not be installed
    """Return the run that the user has begun in this process, or None."""
    wandb = sys.modules.get("wandb")
    return getattr(wandb, "run", None)
