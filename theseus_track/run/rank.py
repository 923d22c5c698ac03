"""Which process is rank 0, decided here and nowhere else."""

import os
import sys

from theseus_track.errors import BadInput

__all__ = ["is_rank_zero"]

# Variables that a launcher sets when it starts several processes of one job.
_LAUNCHERS = (
    "JAX_NUM_PROCESSES",
    "SLURM_STEP_NUM_TASKS",
    "OMPI_COMM_WORLD_SIZE",
)


def is_rank_zero() -> bool:
    """Say whether this process writes; starts no JAX backend in a single process.

    Returns:
        True in a single process and in process 0 of several.

    Raises:
        BadInput: When a launcher started several processes and
            `jax.distributed.initialize()` has not been called yet.
    """
    jax = sys.modules.get("jax")
    if jax is not None and jax.distributed.is_initialized():
        return bool(jax.process_index() == 0)
    for variable in _LAUNCHERS:
        count = os.environ.get(variable, "")
        if count.isdigit() and int(count) > 1:
            raise BadInput(
                f"{variable}={count}: this job has several processes, and "
                "jax.distributed.initialize() has not been called. Call it first, "
                "then open_run(), in every process."
            )
    return True
