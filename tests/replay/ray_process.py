"""A replay by Ray, as a program: ray_process.py ROOT MARKER.

Run in a network namespace of its own, in which there is nothing but this machine. The
first worker that draws something is killed; MARKER tells that it has been.
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np

from tests.replay.test_replay import Means

MARKER = "THESEUS_TEST_MARKER"


class KillsItsWorker(Means):
    """Kills the process that draws it, the first time."""

    NAME = "means"

    def plot(self, values: np.ndarray) -> list[float]:
        """Die, or return the numbers."""
        try:
            Path(os.environ[MARKER]).touch(exist_ok=False)
        except FileExistsError:
            return super().plot(values)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


def main() -> None:
    from theseus_track.replay import Request, replay_on_ray  # noqa: PLC0415

    root, marker = sys.argv[1:]
    os.environ[MARKER] = marker
    request = Request(
        what="source",
        analyses=("tests.replay.ray_process:KillsItsWorker",),
        root=root,
    )
    told: list[tuple[int, int]] = []
    outcome = replay_on_ray(request, workers=2, tell=lambda *done: told.append(done))
    print(outcome.complete, outcome.done, told)  # noqa: T201
    again = replay_on_ray(request, workers=2)
    print(again.done, again.skipped)  # noqa: T201


if __name__ == "__main__":
    main()
