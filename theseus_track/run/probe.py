"""The batch that analyses look at: its hash, and the one that a run stored before."""

import hashlib
import os
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from theseus_track.errors import BadInput, LedgerError
from theseus_track.records import dumps, split_tree
from theseus_track.store import Run

__all__ = ["batch_hash", "batch_of", "same_batch"]


def batch_of(given: Any) -> Any:
    """Return the batch that is given, or that a file or function gives.

    Args:
        given: A pytree of arrays; a function that makes one; or the path of an
            `.npz` file, whose arrays go by their names.

    Raises:
        BadInput: When the file cannot be read as that.
    """
    if callable(given):
        return given()
    if not isinstance(given, str | os.PathLike):
        return given
    path = os.fspath(given)
    try:
        # No pickles: a file of somebody else's must not run code.
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, AttributeError) as error:
        raise BadInput(
            f"{path} holds no arrays by name: {error}. Write it with numpy.savez."
        ) from error


def batch_hash(batch: Any) -> str:
    """Hash the structure, shapes, dtypes and bytes of a batch; 16 hex digits.

    A batch that is read back from the ledger, where a dataclass has become a dict,
    has the hash that it had.
    """
    structure, leaves = split_tree(batch, lambda leaf, _path: np.asarray(leaf))
    arrays = [array for _, array in leaves]
    if any(array.dtype == object for array in arrays):
        # A container that only JAX knows.
        structure = str(jax.tree.structure(batch))
        arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(batch)]
    digest = hashlib.sha256(dumps(structure).encode())
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def same_batch(run: Run | None, name: str, make: Callable[[], Any]) -> Any:
    """Return the batch that a run stored under a name, so that results compare.

    Args:
        run: The run, or None.
        name: What the batch is called there.
        make: Makes the batch where none is stored. What it makes is preferred to a
            stored one of equal hash, since only it has containers of the user's own.

    Returns:
        A pytree of arrays.
    """
    stored = run.probes.get(name) if run is not None else None
    made = make()
    if stored is None or batch_hash(jax.device_get(made)) == stored.hash:
        return made
    try:
        return stored.batch
    except LedgerError:
        # Damaged: then the results carry the hash of another batch, and say so.
        return made
