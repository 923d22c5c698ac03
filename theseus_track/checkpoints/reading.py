"""Reading from a checkpoint what a forward pass needs, and nothing else."""

import dataclasses
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from theseus_track.checkpoints.arrays import OrbaxReader
from theseus_track.checkpoints.checkpoint import Checkpoint
from theseus_track.checkpoints.files import MsgpackReader, SafetensorsReader
from theseus_track.checkpoints.leaves import (
    Leaf,
    Name,
    Placed,
    Reader,
    Wanted,
    as_keys,
    name_of,
)
from theseus_track.checkpoints.match import Difference, Matched, match, table
from theseus_track.errors import (
    CheckpointError,
    CheckpointMismatch,
    NotFound,
    describe_unknown,
)

__all__ = ["Restored", "describe", "restore"]

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was read.

    Attributes:
        tree: A tree like the one asked for, with the arrays of the checkpoint.
        differences: Leaves whose dtype was converted and, with `allow_partial`, those
            that did not fit and are as in the tree asked for.
        ignored: Entries of the checkpoint that nothing was read from.
    """

    tree: Any
    differences: tuple[Difference, ...]
    ignored: tuple[str, ...]

    @property
    def partial(self) -> bool:
        """Whether something did not fit."""
        return any(d.kind != "dtype" for d in self.differences)


def describe(checkpoint: Checkpoint, item: str | None = None) -> dict[str, Leaf]:
    """Return what a checkpoint holds: names, shapes and dtypes, without the arrays.

    Args:
        checkpoint: A complete one.
        item: One of its items. By default all; where it has several, their names come
            first, as in "params/blocks_0/kernel" for the item "params".

    Returns:
        Name, with "/" between its parts, -> leaf, in the order of the tree. Of a
        msgpack file the whole is read, since the format allows no less.

    Raises:
        CheckpointError: When it is not complete, or cannot be read.
        NotFound: When there is no such item.
    """
    contents = _Contents(checkpoint, item)
    return {"/".join(name): leaf for name, leaf in contents.leaves.items()}


def restore(
    checkpoint: Checkpoint,
    like: Any,
    *,
    item: str | None = None,
    take: Mapping[str, str] | None = None,
    sharding: jax.sharding.Sharding | None = None,
    allow_partial: bool = False,
    needed: Any = None,
) -> Restored:
    """Read the leaves of a tree, onto whatever devices it is wanted on.

    Args:
        checkpoint: A complete one, saved from any number of devices.
        like: The tree that is wanted, as `jax.eval_shape` of `model.init` gives it:
            its leaves say shape and dtype, and their own sharding if they have one.
        item: Where the checkpoint has several items, the one to read from. By default
            the first names in `like` are looked for in all of them.
        take: The first name in `like` -> where the checkpoint holds what is below it,
            such as {"params": "ema/params"}; "" is the whole. By default it is found,
            also in a TrainState, and where the item is the parameters themselves.
        sharding: Where leaves go that have no sharding; the first device by default.
        allow_partial: Keep the leaf of `like` where none fits, instead of raising.
        needed: A tree of bools, structured as `like`. Where it is False, the leaf of
            `like` is checked and kept, and nothing is read for it; None: all are read.

    Returns:
        The tree and what is to be known about it.

    Raises:
        CheckpointMismatch: When leaves are missing, extra or of another shape; the
            message is a table of them. Leaves outside of what is taken, such as the
            optimizer's, are not extra.
        CheckpointError: When the checkpoint is not complete or cannot be read.
        BadInput: When a name is at several places, or not where `take` says.
        NotFound: When there is no such item.

    Example:
        ```python
        from pathlib import Path

        import jax, jax.numpy as jnp, flax.linen as nn, orbax.checkpoint as ocp
        from theseus_track.checkpoints import find_checkpoints, restore

        model, x = nn.Dense(3), jnp.ones((1, 2))
        variables = model.init(jax.random.key(0), x)
        with ocp.CheckpointManager(Path("saved").resolve()) as manager:
            manager.save(7, args=ocp.args.StandardSave({**variables, "step": 7}))

        found = find_checkpoints("saved").by_step()
        like = jax.eval_shape(model.init, jax.random.key(0), x)
        read = restore(found[7], like).tree
        assert (read["params"]["kernel"] == variables["params"]["kernel"]).all()
        ```
    """
    contents = _Contents(checkpoint, item)
    stored = contents.leaves
    paths, treedef = jax.tree_util.tree_flatten_with_path(like)
    names = [name_of(path) for path, _ in paths]
    leaves = dict(zip(names, (leaf for _, leaf in paths), strict=True))
    matched = match({n: _wanted_leaf(leaf) for n, leaf in leaves.items()}, stored, take)
    _check(checkpoint, matched, allow_partial=allow_partial)
    flags = [True] * len(names) if needed is None else jax.tree.leaves(needed)
    read_names = {
        name
        for name, flag in zip(names, flags, strict=True)
        if flag and name in matched.pairs
    }
    default = sharding or jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
    wanted = {
        matched.pairs[name]: _wanted(leaf, default)
        for name, leaf in leaves.items()
        if name in read_names
    }
    _tell_devices(checkpoint, (stored[name] for name in wanted), wanted.values())
    read = contents.read(wanted)
    arrays = [
        as_keys(read[matched.pairs[name]], leaf) if name in read_names else leaf
        for name, leaf in leaves.items()
    ]
    return Restored(
        tree=jax.tree.unflatten(treedef, arrays),
        differences=matched.differences,
        ignored=matched.ignored,
    )


def _check(checkpoint: Checkpoint, matched: Matched, *, allow_partial: bool) -> None:
    wrong = [one for one in matched.differences if one.kind != "dtype"]
    if not wrong or allow_partial:
        return
    raise CheckpointMismatch(
        f"{checkpoint.path} does not fit the model: {_counted(wrong)}. Give the "
        "configuration that it was trained with, say where the leaves are by take=, or "
        f"allow a partial restore.\n{table(wrong)}",
        tuple(wrong),
    )


def _counted(differences: list[Difference]) -> str:
    words = {"missing": "missing", "extra": "extra", "shape": "of another shape"}
    counts = {
        text: sum(d.kind == kind for d in differences) for kind, text in words.items()
    }
    return ", ".join(f"{count} {text}" for text, count in counts.items() if count)


class _Contents:
    """The items of one checkpoint that are looked at, and their leaves."""

    def __init__(self, checkpoint: Checkpoint, item: str | None) -> None:
        items = _items(checkpoint, item)
        # Of a single item, the names are those of its tree.
        self._readers: list[tuple[Name, Reader]] = [
            (() if len(items) == 1 else (name,), _reader(checkpoint, path))
            for name, path in items.items()
        ]
        self.leaves: dict[Name, Leaf] = {
            (*prefix, *name): leaf
            for prefix, reader in self._readers
            for name, leaf in reader.leaves().items()
        }

    def read(self, wanted: Mapping[Name, Wanted]) -> Placed:
        """Return these arrays, each by the name that `leaves` gives it."""
        placed: Placed = {}
        for prefix, reader in self._readers:
            depth = len(prefix)
            own = {n[depth:]: how for n, how in wanted.items() if n[:depth] == prefix}
            if own:
                found = reader.read(own)
                placed |= {(*prefix, *name): array for name, array in found.items()}
        return placed


def _items(checkpoint: Checkpoint, item: str | None) -> dict[str, Path]:
    if checkpoint.state != "complete":
        raise CheckpointError(
            f"{checkpoint.path} is {checkpoint.state}: {checkpoint.reason}."
        )
    items = dict(checkpoint.items)
    if item is None:
        return items
    if item not in items:
        raise NotFound(f"{checkpoint.path}: {describe_unknown('item', item, items)}")
    return {item: items[item]}


def _reader(checkpoint: Checkpoint, path: Path) -> Reader:
    if checkpoint.format == "safetensors":
        return SafetensorsReader(path)
    if checkpoint.format == "msgpack":
        return MsgpackReader(path)
    return OrbaxReader(path)


def _wanted_leaf(leaf: Any) -> Leaf:
    array = _data(leaf)
    return Leaf(shape=tuple(array.shape), dtype=str(array.dtype))


def _wanted(leaf: Any, default: jax.sharding.Sharding) -> Wanted:
    array = _data(leaf)
    own = getattr(leaf, "sharding", None)
    return Wanted(shape=tuple(array.shape), dtype=array.dtype, sharding=own or default)


def _data(leaf: Any) -> Any:
    """Return shape and dtype of what is stored for a leaf: of keys, of their data."""
    if not hasattr(leaf, "dtype"):
        return jax.eval_shape(lambda: jnp.asarray(leaf))
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.eval_shape(jax.random.key_data, leaf)
    return leaf


def _tell_devices(
    checkpoint: Checkpoint, stored: Iterable[Leaf], wanted: Iterable[Wanted]
) -> None:
    source = max((leaf.devices or 1 for leaf in stored), default=1)
    target = max((len(how.sharding.device_set) for how in wanted), default=1)
    _log.info(
        "%s was saved from %d devices and is read onto %d.",
        checkpoint.path,
        source,
        target,
    )
