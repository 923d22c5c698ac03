"""Reading the trees that Orbax wrote, leaf by leaf."""

import contextlib
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from theseus_track.checkpoints.files import MsgpackReader
from theseus_track.checkpoints.leaves import Leaf, Name, Placed, Wanted, name_of
from theseus_track.checkpoints.quiet import quiet
from theseus_track.errors import CheckpointError

__all__ = ["OrbaxReader"]


class OrbaxReader:
    """Reads one tree: a directory with `_METADATA`, of any release and storage.

    Each reader has a handler of its own. A CheckpointManager finds nothing under
    another manager's prefix, and remembers handlers from call to call.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._options = _own_barriers()
        # With the file of aggregated arrays in sight, Orbax 0.12 reads all the others.
        self._handler = ocp.PyTreeCheckpointHandler(
            aggregate_filename="none", multiprocessing_options=self._options
        )

    def leaves(self) -> dict[Name, Leaf]:
        """Return what is stored; reads metadata alone."""
        own = {
            name: _leaf(metadata)
            for name, metadata in self._metadata()
            if getattr(metadata, "shape", None) is not None
        }
        return self._aggregated.leaves() | own

    def read(self, wanted: Mapping[Name, Wanted]) -> Placed:
        """Return these arrays; of the others, not a byte is read."""
        together = set(self._aggregated.leaves())
        own = {name: how for name, how in wanted.items() if name not in together}
        rest = {name: how for name, how in wanted.items() if name in together}
        read = self._read(own) if own else {}
        return read | self._aggregated.read(rest)

    @functools.cached_property
    def _aggregated(self) -> MsgpackReader:
        """What Orbax 0.5 put into one file, beside those that have their own place."""
        return MsgpackReader(self._path)

    def _read(self, wanted: Mapping[Name, Wanted]) -> Placed:
        # A target with every leaf, for the kinds of all containers: Orbax compares
        # them. What is a placeholder is passed over.
        tree = self._tree

        def target(path: Any, _: Any) -> Any:
            how = wanted.get(name_of(path))
            if how is None:
                return ocp.PLACEHOLDER
            return jax.ShapeDtypeStruct(how.shape, how.dtype)

        def arguments(path: Any, _: Any) -> Any:
            how = wanted.get(name_of(path))
            if how is None:
                return ocp.RestoreArgs()
            return ocp.ArrayRestoreArgs(
                sharding=how.sharding, global_shape=how.shape, dtype=how.dtype
            )

        each = jax.tree_util.tree_map_with_path
        restore = ocp.args.PyTreeRestore(
            item=each(target, tree), restore_args=each(arguments, tree)
        )
        with quiet(), contextlib.closing(self._checkpointer()) as checkpointer:
            try:
                restored = checkpointer.restore(self._path, args=restore)
            except Exception as error:  # Orbax raises bare Exceptions
                raise CheckpointError(
                    f"The arrays in {self._path} cannot be read: {_cause(error)}"
                ) from error
        found = {
            name_of(path): leaf
            for path, leaf in jax.tree_util.tree_leaves_with_path(restored)
        }
        return {name: found[name] for name in wanted}

    def _checkpointer(self) -> ocp.Checkpointer:
        return ocp.Checkpointer(self._handler, multiprocessing_options=self._options)

    def _metadata(self) -> Iterator[tuple[Name, Any]]:
        for path, leaf in jax.tree_util.tree_leaves_with_path(self._tree):
            yield name_of(path), leaf

    @functools.cached_property
    def _tree(self) -> Any:
        with quiet():
            try:
                found = self._handler.metadata(self._path)
            except Exception as error:  # Orbax raises bare Exceptions
                raise CheckpointError(
                    f"{self._path} cannot be read: {_cause(error)}"
                ) from error
        return found.tree


def _own_barriers() -> Any:
    """Let a process read alone.

    The default barrier is a device collective: in a thread that reads ahead it meets
    those of the eval step in another order on each host, and all of them hang.
    """
    if jax.process_count() == 1:
        return ocp.options.MultiprocessingOptions()
    rank = jax.process_index()
    return ocp.options.MultiprocessingOptions(
        primary_host=rank,
        active_processes={rank},
        barrier_sync_key_prefix=f"theseus{rank}",
    )


def _leaf(metadata: Any) -> Leaf:
    return Leaf(
        shape=tuple(metadata.shape),
        dtype=str(metadata.dtype),
        devices=_devices(getattr(metadata, "sharding", None)),
    )


def _devices(sharding: Any) -> int | None:
    if sharding is None:
        return None
    shape = getattr(sharding, "shape", None)
    if shape is None:
        return 1
    count = 1
    for axis in shape:
        count *= int(axis)
    return count


def _cause(error: BaseException) -> str:
    """Return the first line of what lies behind an error, shortened."""
    text = str(error.__cause__ or error).strip() or type(error).__name__
    return text.splitlines()[0][:300]
