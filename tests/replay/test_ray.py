"""Ray as the engine of a replay, for real: a worker is killed in the middle."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.jobs.small import SmallWithAnalysis
from theseus_track.errors import BadInput
from theseus_track.replay import Request, replay_on_ray
from theseus_track.store import Store

# Ray listens on every address of its machine; a namespace has only the loopback.
ALONE = ["unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$0" "$@"']


def can_be_alone() -> bool:
    if importlib.util.find_spec("ray") is None or shutil.which("unshare") is None:
        return False
    tried = subprocess.run([*ALONE, "true"], check=False, capture_output=True)
    return tried.returncode == 0


@pytest.mark.slow  # starts a cluster
@pytest.mark.timeout(300)
@pytest.mark.skipif(
    not can_be_alone(), reason="needs Ray, and the right to a network namespace"
)
def test_a_killed_worker_goes_on_where_it_was(tmp_path: Path) -> None:
    root, marker = tmp_path / "root", tmp_path / "killed"
    SmallWithAnalysis(steps=6, checkpoint_every=1)(root, name="train", id="source")
    program = Path(__file__).with_name("ray_process.py")
    done = subprocess.run(
        [*ALONE, sys.executable, str(program), str(root), str(marker)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    # Before them, Ray tells of the worker that died.
    assert done.stdout.splitlines()[-2:] == [
        "True (1, 2, 3, 4, 5, 6) [(1, 2), (2, 2)]",
        "() 6",
    ], done.stderr
    assert marker.exists()
    run = Store(root).run("source")
    assert run["means"].steps == [1, 2, 3, 4, 5, 6]
    assert run.damaged == []


def test_without_ray_the_command_to_install_it_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    request = Request(what="source", analyses=("a",), root=str(tmp_path))
    with pytest.raises(BadInput, match=r"theseus-track\[ray\].*--shard"):
        replay_on_ray(request, workers=2)
    with pytest.raises(BadInput, match="at least 1 worker"):
        replay_on_ray(request, workers=0)
