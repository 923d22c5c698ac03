"""Values: what the analyses of one evaluation returned, as one pytree on device."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import jax

from theseus_track.analysis.merging import merged
from theseus_track.capture import Fault
from theseus_track.errors import NotFound, describe_unknown
from theseus_track.records import join_tree, loads

if TYPE_CHECKING:
    from theseus_track.analysis.base import AnalysisBase

__all__ = ["Entry", "Values"]

# The values and flags of one analysis: a pytree of arrays (or tracers).
Tree = Any


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """What is known of one analysis' value at trace time; the static part of Values.

    Attributes:
        analysis: The instance, made once; compared by identity.
        paths: The analysed calls, in program order.
        axes: (path, names of the leading axes that loops added), for calls in loops.
        structure: The structure of the value as JSON text (`records.split_tree`);
            unlike a JAX treedef it keeps the order of dict keys.
        leaves: The path of each leaf within the value.
        held: What TOGETHER holds until the forward is over, in bytes.
        conditional: The paths that have a flag, because a branch holds the call.
        fault: Why there is no value, or None.
        program: Fingerprint of the set of analyses and shapes that ran together.
    """

    analysis: "AnalysisBase"
    paths: tuple[str, ...] = ()
    axes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    structure: str = "null"
    leaves: tuple[str, ...] = ()
    held: int = 0
    conditional: tuple[str, ...] = ()
    fault: Fault | None = None
    program: str = ""

    @property
    def name(self) -> str:
        """The NAME of the analysis."""
        return self.analysis.NAME

    @property
    def key(self) -> str:
        """The registry key of the analysis, or its qualified name."""
        return self.analysis.KEY

    def _identity(self) -> tuple[object, ...]:
        # The analysis by identity: a user's class may define any equality.
        others = (getattr(self, f.name) for f in dataclasses.fields(self)[1:])
        return (id(self.analysis), *others)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


@jax.tree_util.register_pytree_with_keys_class
class Values(Mapping[str, Tree]):
    """What the analyses of one evaluation returned: NAME -> value, in order.

    A pytree whose leaves are the arrays: it goes through jit, `jax.device_get`,
    `jax.tree.map`, and a scan or vmap over batches. `run.log` takes it. A NAME
    whose analysis failed is listed in `faults` and has no value.

    Example:
        ```python
        import jax, jax.numpy as jnp, flax.linen as nn
        from theseus_track.analysis import AnalysisBase, instrument

        class Outputs(AnalysisBase):
            TARGET = nn.Dense

            def analyze(self, layer, inputs):
                return inputs.output

        model = nn.Dense(3)
        x = jnp.ones((2, 4))
        variables = model.init(jax.random.key(0), x)
        out, values = instrument(model.apply, [Outputs])(variables, x)
        assert values["outputs"].shape == (2, 3)
        ```
    """

    __slots__ = ("_entries", "_flags", "_leaves")

    def __init__(
        self,
        entries: tuple[Entry, ...] = (),
        leaves: tuple[tuple[Tree, ...], ...] = (),
        flags: tuple[tuple[Tree, ...], ...] = (),
    ) -> None:
        """Build from the static entries and the arrays; `instrument` does it.

        Args:
            entries: One for each analysis, those with a fault included.
            leaves: For each entry its arrays; none for an entry with a fault.
            flags: For each entry one bool array for each of its conditional paths,
                False where the branch was not taken.
        """
        self._entries = entries
        self._leaves = leaves
        self._flags = flags

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The static part: one entry for each analysis."""
        return self._entries

    @property
    def faults(self) -> dict[str, Fault]:
        """NAME -> why there is no value."""
        return {e.name: e.fault for e in self._entries if e.fault is not None}

    @property
    def valid(self) -> dict[str, dict[str, Tree]]:
        """NAME -> {path: bool array}: False where the call's branch was not taken."""
        pairs = zip(self._entries, self._flags, strict=True)
        return {
            entry.name: dict(zip(entry.conditional, flags, strict=True))
            for entry, flags in pairs
            if entry.conditional
        }

    def paths(self, name: str) -> tuple[str, ...]:
        """Return the calls that an analysis looked at, in program order."""
        return self._entry(name).paths

    def arrays(self, index: int) -> tuple[tuple[Tree, ...], tuple[Tree, ...]]:
        """Return the arrays and the flags of the entry at an index."""
        return self._leaves[index], self._flags[index]

    def only(self, names: Iterable[str]) -> "Values":
        """Keep the analyses of some NAMEs, with their faults; NotFound for others."""
        wanted = {self._entry(name).name for name in names}
        kept = [
            (entry, *self.arrays(index))
            for index, entry in enumerate(self._entries)
            if entry.name in wanted
        ]
        if not kept:
            return Values()
        entries, leaves, flags = zip(*kept, strict=True)
        return Values(entries, leaves, flags)

    def merge(self, other: "Values") -> "Values":
        """Combine the values of two batches by each analysis' `merge(a, b)`.

        Args:
            other: The values of the same analyses on another batch.

        Returns:
            New Values; an analysis without `merge` keeps the first value. Where
            branches hold the calls, a batch that did not take one does not count for
            it: the value is that of the other batch, and `valid` says whether either
            took it. What `combine` made of several calls counts as a whole.

        Raises:
            BadInput: When a `merge` returned another structure than `analyze`.
        """
        if not self._entries:
            return self
        theirs = {
            entry.name: other.arrays(index)
            for index, entry in enumerate(other.entries)
            if entry.fault is None
        }
        kept = []
        for index, entry in enumerate(self._entries):
            mine = self.arrays(index)
            if entry.fault is None and entry.name in theirs:
                mine = merged(entry, mine, theirs[entry.name])
            kept.append(mine)
        leaves, flags = zip(*kept, strict=True)
        return Values(self._entries, leaves, flags)

    def __getitem__(self, name: str) -> Tree:
        """Return the value of an analysis; NotFound says why there is none."""
        for entry, leaves in zip(self._entries, self._leaves, strict=True):
            if entry.name == name and entry.fault is None:
                return join_tree(loads(entry.structure), leaves)
        fault = self._entry(name).fault
        raise NotFound(f"{name} has no value: {fault.message if fault else 'unknown'}")

    def __contains__(self, name: object) -> bool:
        """Say whether an analysis has a value."""
        return any(name == known for known in self)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the NAMEs that have a value, in the order of instrument."""
        return (entry.name for entry in self._entries if entry.fault is None)

    def __len__(self) -> int:
        """Count the analyses that have a value."""
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        shapes = {
            entry.name: join_tree(
                loads(entry.structure),
                [getattr(leaf, "shape", leaf) for leaf in leaves],
            )
            for entry, leaves in zip(self._entries, self._leaves, strict=True)
            if entry.fault is None
        }
        failed = f", faults={list(self.faults)}" if self.faults else ""
        return f"Values({shapes}{failed})"

    def __reduce__(self) -> Any:
        """Refuse pickling: the static part holds live analyses."""
        raise TypeError(
            "Values cannot be pickled: they hold the analyses themselves. Log them "
            "with run.log, or pickle dict(values)."
        )

    def tree_flatten_with_keys(self) -> tuple[Any, Any]:
        """Split into arrays and the static part, for JAX."""
        children = (
            (jax.tree_util.GetAttrKey("leaves"), self._leaves),
            (jax.tree_util.GetAttrKey("flags"), self._flags),
        )
        return children, self._entries

    @classmethod
    def tree_unflatten(cls, entries: tuple[Entry, ...], children: Any) -> "Values":
        """Rebuild from what `tree_flatten_with_keys` gave, for JAX."""
        return cls(entries, *children)

    def _entry(self, name: str) -> Entry:
        for entry in self._entries:
            if entry.name == name:
                return entry
        known = [entry.name for entry in self._entries]
        raise NotFound(describe_unknown("analysis", name, known))
