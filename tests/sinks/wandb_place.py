"""W&B offline in a directory of the test's own."""

import os
import sys
from pathlib import Path

import pytest
import wandb

OFFLINE = {
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
    "WANDB_DISABLE_GIT": "true",
    "WANDB_X_DISABLE_META": "true",
    "WANDB_X_DISABLE_STATS": "true",
}


def offline(directory: Path) -> dict[str, str]:
    """Return the environment that keeps everything of W&B below a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    places = ("WANDB_DIR", "WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR")
    return {**OFFLINE, **dict.fromkeys(places, str(directory))}


def offline_environment(directory: Path) -> dict[str, str]:
    """Return the environment of a process that shares nothing of W&B with this one."""
    # wandb hands its background process on to the processes that are started.
    own = {k: v for k, v in os.environ.items() if not k.startswith("WANDB")}
    path = os.pathsep.join(sys.path)
    return {**own, **offline(directory), "PYTHONPATH": path}


@pytest.fixture
def wandb_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set W&B up offline and return where it writes."""
    directory = tmp_path / "wandb"
    for name, value in offline(directory).items():
        monkeypatch.setenv(name, value)
    # wandb reads the environment once in a process.
    wandb.setup(wandb.Settings(root_dir=str(directory), mode="offline"))
    return directory
