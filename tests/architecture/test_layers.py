"""The layering contract holds, and fails where it should."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.project import ROOT


def _lint_imports(project: Path) -> subprocess.CompletedProcess[str]:
    code = "from importlinter.cli import lint_imports_command as lint; lint()"
    path = os.pathsep.join(map(str, (project, project / "analyses")))
    return subprocess.run(
        [sys.executable, "-c", code, "--no-logo", "--no-cache"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the code that a test may spoil."""
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("theseus_track", "analyses"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_layers_hold(copy: Path) -> None:
    done = _lint_imports(copy)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("file", "line", "named"),
    [
        ("theseus_track/utils.py", "", "theseus_track.utils"),
        ("theseus_track/records/up.py", "import theseus_track.store", "records.up"),
        ("theseus_track/store/numeric.py", "import jax", "store.numeric -> jax"),
        ("theseus_track/run/sending.py", "import tensorboardX", "run.sending"),
        (
            "analyses/theseus_analyses/deep.py",
            "import theseus_track.records",
            "theseus_analyses.deep -> theseus_track.records",
        ),
    ],
)
def test_a_stray_breaks_a_contract(
    copy: Path, file: str, line: str, named: str
) -> None:
    (copy / file).write_text(f'"""A stray."""\n{line}\n', encoding="utf-8")
    done = _lint_imports(copy)
    assert done.returncode == 1, done.stdout
    assert named in done.stdout
