"""Replays of one directory, each in a process of its own that is killed.

Called with a directory and the numbers of the file operations at which they are
killed. The last replay is not killed; what it says is printed. They are forked, so
that the imports are paid for once.
"""

import os
import sys
from pathlib import Path

import flax.linen as nn
import flax.serialization
import jax
import numpy as np

# What the command imports when it is called is imported once, before the forks.
import theseus_track.cli.progress
import theseus_track.demo
import theseus_track.replay
import theseus_track.sinks  # noqa: F401
from tests.run.kill_process import die_at_operation
from theseus_track.analysis import AnalysisBase
from theseus_track.capture import Inputs
from theseus_track.cli import main

STEPS = list(range(10, 130, 10))


class Product(AnalysisBase):
    """What a layer returns."""

    TARGET = nn.Dense

    def analyze(self, layer: nn.Dense, inputs: Inputs) -> jax.Array:
        """Return the output."""
        output: jax.Array = inputs.output
        return output

    def plot(self, values: np.ndarray) -> list[float]:
        """Return its numbers."""
        return [float(value) for value in values.ravel()]


RECIPE = """
import jax
import numpy as np
from flax import linen as nn

from theseus_track.jobs import Recipe

model = nn.Dense(1, use_bias=False)
variables = {"params": {"kernel": jax.ShapeDtypeStruct((1, 1), np.float32)}}
recipe = Recipe(model.apply, variables, np.full((1, 1), 2, np.float32))
"""


def save(directory: Path) -> None:
    """Write checkpoints in which the kernel is the step."""
    (directory / "saved").mkdir()
    (directory / "recipe.py").write_text(RECIPE)
    for step in STEPS:
        kernel = np.full((1, 1), step, np.float32)
        data = flax.serialization.msgpack_serialize({"params": {"kernel": kernel}})
        (directory / "saved" / f"checkpoint_{step}").write_bytes(data)


def replay(directory: Path, dies_at: int | None) -> None:
    """Call the command; it ends the process."""
    words = ["replay", str(directory / "saved"), "--root", str(directory / "root")]
    words += ["-a", "tests.replay.kill_process:Product"]
    if dies_at is not None:
        die_at_operation(dies_at)
    main([*words, "--recipe", str(directory / "recipe.py")])


def forked(directory: Path, dies_at: int | None) -> int:
    """Return the signal or exit code with which a replay ends."""
    child = os.fork()
    if child == 0:
        try:
            replay(directory, dies_at)
        except SystemExit as end:
            sys.stdout.flush()
            os._exit(int(end.code or 0))
        finally:
            os._exit(70)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    place, *numbers = sys.argv[1:]
    save(Path(place))
    ends = [forked(Path(place), int(number)) for number in numbers]
    print(*ends, flush=True)  # noqa: T201
    sys.exit(forked(Path(place), None))
