"""Check: what a step returns with and without its analyses, bit by bit."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from theseus_track.analysis.values import Values
from theseus_track.capture import Fault
from theseus_track.capture.program import copied, explained, node_state

__all__ = ["Check", "make_check"]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Check(Mapping[str, bool]):
    """What the analyses leave as it is; print it.

    A mapping from the path of each leaf of what the step returned, and of the state
    of NNX nodes among its arguments, to whether it is the same to the last bit.

    Attributes:
        equal: Path -> whether it is the same.
        off: Path of what is not -> the largest difference, as a share of the largest
            magnitude; infinite where shapes, dtypes or objects differ.
        faults: NAME of an analysis that could not run -> why; it was not part of it.
    """

    equal: Mapping[str, bool]
    off: Mapping[str, float]
    faults: Mapping[str, Fault]

    def __getitem__(self, path: str) -> bool:
        """Say whether a leaf is the same to the last bit."""
        return self.equal[path]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the paths, those of the output first."""
        return iter(self.equal)

    def __len__(self) -> int:
        """Count what was compared."""
        return len(self.equal)

    def __str__(self) -> str:
        same = sum(self.equal.values())
        lines = [f"{same} of {len(self)} are the same to the last bit."]
        lines += [
            f"{path or 'the output'} is off by {off:.1e}"
            for path, off in self.off.items()
        ]
        lines += [f"left out: {fault.message}" for fault in self.faults.values()]
        return "\n".join(lines)


def make_check(
    plain: Callable[..., Any],
    watched: Callable[..., tuple[Any, Values]],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Check:
    """Run a step and the instrumented one on copies of the arguments, and compare."""
    (first, first_kwargs), (second, second_kwargs) = (
        copied((args, dict(kwargs))) for _ in range(2)
    )
    with explained(plain):
        out = plain(*first, **first_kwargs)
    same, values = watched(*second, **second_kwargs)
    # What the step did to modules, metrics and other graph nodes of NNX.
    states = (node_state((first, first_kwargs)), node_state((second, second_kwargs)))
    off = {
        **_compared(out, same, ""),
        **_compared(*states, "state"),
    }
    return Check(
        equal={path: not share for path, share in off.items()},
        off={path: share for path, share in off.items() if share},
        faults=values.faults,
    )


def _compared(one: Any, two: Any, root: str) -> dict[str, float]:
    pairs = zip(
        jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(two), strict=True
    )
    return {root + jax.tree_util.keystr(path): _off(a, b) for (path, a), b in pairs}


def _off(one: object, two: object) -> float:
    """Return by how much two leaves differ; 0 only where every bit is the same."""
    if not isinstance(one, jax.Array | np.ndarray):
        return 0.0 if one == two else np.inf
    a, b = (np.asarray(jax.device_get(_data(leaf))) for leaf in (one, two))
    if a.dtype != b.dtype or a.shape != b.shape:
        return np.inf
    if a.tobytes() == b.tobytes():
        return 0.0
    if a.dtype.kind in "OUS":
        return 0.0 if bool((a == b).all()) else np.inf
    # Small floats of JAX have no arithmetic of their own in numpy.
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = a.astype(wide), b.astype(wide)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return np.inf
    difference = np.abs(np.where(np.isfinite(a), a - b, 0)).max()
    scale = np.abs(np.where(np.isfinite(a), a, 0)).max()
    # Bits may differ where numbers do not: minus zero, other kinds of not-a-number.
    return max(float(difference / scale) if scale else np.inf, np.finfo(float).tiny)


def _data(array: Any) -> Any:
    """Return an array's numbers, also where it holds keys of random streams."""
    is_key = jnp.issubdtype(array.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(array) if is_key else array
