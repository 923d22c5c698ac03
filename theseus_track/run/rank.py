"""Which process is rank 0, and what it decides for all; here and nowhere else."""

import json
import os
import sys
from collections.abc import Callable

import numpy as np

from theseus_track.errors import BadInput

__all__ = ["decided_by_rank_zero", "is_one_of_several", "is_rank_zero"]

# Variables that a launcher sets when it starts several processes of one job.
_LAUNCHERS = (
    "JAX_NUM_PROCESSES",
    "SLURM_STEP_NUM_TASKS",
    "OMPI_COMM_WORLD_SIZE",
)

_LETTER = 4096
"""Bytes of what rank 0 tells; the same for all, who do not know its length."""

_LONGEST = 500
"""Characters of what rank 0 tells: in JSON, each has at most six bytes."""


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


def is_one_of_several() -> bool:
    """Say whether other processes take part; starts no backend in a single process."""
    jax = sys.modules.get("jax")
    if jax is None or not jax.distributed.is_initialized():
        return False
    return bool(jax.process_count() > 1)


def decided_by_rank_zero(decide: Callable[[], str]) -> str:
    """Let rank 0 decide a text, and tell it to every process.

    A collective, where there are several processes: all must call it.

    Args:
        decide: Called on rank 0 alone. Returns at most 500 characters.

    Returns:
        What it returned, in every process.

    Raises:
        Exception: What `decide` raised, on rank 0.
        BadInput: On the other ranks, when it raised; the message is the same. As
            `is_rank_zero` too.
    """
    rank_zero = is_rank_zero()
    if not is_one_of_several():
        return decide()
    letter: dict[str, str] = {}
    failure: Exception | None = None
    if rank_zero:
        try:
            letter["text"] = _short(decide())
        # Whatever it is, the others wait for an answer.
        except Exception as error:  # noqa: BLE001
            failure = error
            letter["error"] = f"Process 0: {error}"[:_LONGEST]
    told = _broadcast(letter)
    if failure is not None:
        raise failure
    if "error" in told:
        raise BadInput(told["error"])
    return told["text"]


def _short(text: str) -> str:
    if len(text) > _LONGEST:
        raise BadInput(f"{text:.40}... has more than {_LONGEST} characters: use less.")
    return text


def _broadcast(letter: dict[str, str]) -> dict[str, str]:
    """Send JSON from rank 0 to all; the others' own is not looked at."""
    from jax.experimental import multihost_utils  # noqa: PLC0415 - only with several

    data = np.zeros(_LETTER, np.uint8)
    text = np.frombuffer(json.dumps(letter).encode("ascii"), np.uint8)
    data[: len(text)] = text
    told = np.asarray(multihost_utils.broadcast_one_to_all(data), np.uint8)
    read: dict[str, str] = json.loads(told.tobytes().rstrip(b"\0"))
    return read
