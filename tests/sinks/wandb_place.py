"""W&B offline in a directory of the test's own."""

import os
import sys
from pathlib import Path

import pytest
import wandb

from theseus_track.sinks import Sink, WandbSink

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


def abandon(sink: Sink) -> None:
    """Leave a sink as a death does: what is in no row of W&B yet is lost.

    Its W&B run ends, as another one of its id could not begin in this process; what
    W&B itself loses by a real death is tested with real ones (tests/run/test_kills.py).
    """
    assert isinstance(sink, WandbSink)
    place = sink._place
    if place is not None:
        assert sink._farewell is not None
        sink._farewell.release()
        place._pump.stop()
        place._run.finish()


@pytest.fixture
def wandb_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set W&B up offline and return where it writes."""
    directory = tmp_path / "wandb"
    for name, value in offline(directory).items():
        monkeypatch.setenv(name, value)
    # wandb reads the environment once in a process.
    wandb.setup(wandb.Settings(root_dir=str(directory), mode="offline"))
    return directory
