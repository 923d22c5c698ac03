"""The command that shows a log directory completely."""

import os
import shlex
from pathlib import Path

__all__ = ["SAMPLES", "viewing_command", "viewing_words"]

# Without the flag TensorBoard keeps ten images of a tag, chosen at random; with 0
# it shows none (tests/sinks/test_tensorboard_server.py).
SAMPLES = "images=1000,text=1000,scalars=5000"


def viewing_command(logdir: str | os.PathLike[str]) -> str:
    """Return the shell command that shows every figure below a log directory.

    Args:
        logdir: The directory; a run's own or one that holds several runs.

    Example:
        >>> viewing_command("my logs")
        "tensorboard --logdir 'my logs' --samples_per_plugin images=1000,text=1000,scalars=5000"
    """  # noqa: E501 (the command is one line)
    return shlex.join(viewing_words(logdir))


def viewing_words(logdir: str | os.PathLike[str]) -> list[str]:
    """Return the words of that command."""
    where = str(Path(logdir))
    return ["tensorboard", "--logdir", where, "--samples_per_plugin", SAMPLES]
