"""The checkpoints that a Trainer writes and resumes from; the one file that saves."""

import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp

from theseus_track.errors import CheckpointError, NotFound
from theseus_track.jobs.state import TrainState

__all__ = ["Checkpoints", "latest_step", "restore_state"]


class Checkpoints:
    """Saves states in the background; a context that waits for them at its end.

    Each checkpoint carries, in Orbax' custom metadata, `step`, `run` (the run's id)
    and `wall_time` (of the save, in seconds since the epoch, UTC), so that it can be
    placed in time after it was copied or renamed.
    """

    def __init__(self, directory: Path, *, keep: int | None, run: str) -> None:
        """Make the directory.

        Args:
            directory: Absolute; one subdirectory for each step.
            keep: How many stay, the newest ones; None: all.
            run: The id of the run.
        """
        self._run = run
        self._directory = directory
        self._manager = ocp.CheckpointManager(
            directory, options=ocp.CheckpointManagerOptions(max_to_keep=keep)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        failures = []
        # Closed also when the last save failed: its threads would keep the process.
        for end in (self._manager.wait_until_finished, self._manager.close):
            try:
                end()
            except Exception as failure:  # noqa: BLE001 (Orbax raises bare Exceptions)
                failures.append(failure)
        # What stopped the training is told first; it may be this very failure.
        if failures and error is None:
            raise self._unsaved(failures[0]) from failures[0]

    def save(self, state: TrainState, *, step: int) -> None:
        """Copy a state to the host, then write it in the background.

        Args:
            state: May be donated to the next step as soon as this returns.
            step: Its training step.
        """
        about = {"step": step, "run": self._run, "wall_time": time.time()}
        try:
            self._manager.save(
                step, args=ocp.args.StandardSave(state), custom_metadata=about
            )
        except Exception as failure:  # Orbax raises bare Exceptions
            raise self._unsaved(failure) from failure

    def _unsaved(self, failure: Exception) -> CheckpointError:
        first = str(failure.__cause__ or failure).strip().split("\n", 1)[0]
        return CheckpointError(
            f"A checkpoint cannot be written in {self._directory}: {first:.200} Make "
            "room there, then go on with resume."
        )


def latest_step(directory: Path) -> int:
    """Return the step of the newest whole checkpoint.

    Raises:
        NotFound: When there is none.
    """
    steps = ocp.utils.checkpoint_steps(directory) if directory.is_dir() else []
    if not steps:
        raise NotFound(
            f"There is no checkpoint in {directory} to resume from. Train without "
            "resume, or give the id of a run that has one."
        )
    return int(max(steps))


def restore_state(directory: Path, step: int, like: TrainState) -> TrainState:
    """Read the state of a step.

    Args:
        directory: The directory of a run's checkpoints.
        step: A saved step.
        like: A state of the same structure and shapes, which gives the devices.

    Returns:
        The state, on the devices of `like`. Arrays that are not committed there, such
        as those of a fresh state, are not committed here: they go where the batches of
        the first step are.
    """
    target = jax.tree.map(ocp.utils.to_shape_dtype_struct, like)
    with ocp.CheckpointManager(directory) as manager:
        restored: Any = manager.restore(step, args=ocp.args.StandardRestore(target))
    state: TrainState = jax.tree.map(_placed_as, restored, like)
    return state


def _placed_as(array: Any, like: Any) -> Any:
    """Take from an array that it must stay where it is, if another need not."""
    stays = not isinstance(like, jax.Array) or like.committed
    return array if stays else jnp.asarray(jax.device_get(array))
