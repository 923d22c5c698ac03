"""A training that was shown in TensorBoard, made once for all tests of a process."""

import shutil
from pathlib import Path

import pytest

from tests.jobs.small import SmallWithAnalysis


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a run "train" with checkpoints at steps 2 and 4."""
    root = tmp_path_factory.mktemp("shown") / "root"
    SmallWithAnalysis(steps=4, checkpoint_every=2)(
        root, name="train", id="source", sinks=["tensorboard"]
    )
    return root


@pytest.fixture
def root(shown: Path, tmp_path: Path) -> Path:
    """A copy that is shown in its own place, which the test may change."""
    path = Path(shutil.copytree(shown, tmp_path / "root"))
    for info in path.rglob("run.json"):
        info.write_text(info.read_text().replace(str(shown), str(path)))
    return path
