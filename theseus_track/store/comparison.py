"""One analysis in several runs at a step: aligned arrays and how they differ."""

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from theseus_track.errors import BadInput, NotFound
from theseus_track.records import host_leaf, split_tree
from theseus_track.store.result import Result
from theseus_track.store.run import Run
from theseus_track.store.store import Store

__all__ = ["Comparison", "cell_difference", "compare"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """The values of one analysis in several runs, leaf by leaf.

    A leaf is a path within the value, such as "blocks_0/attn" or "mean"; "" where the
    value is one array. Only leaves that every run has, in one shape, are here.

    Attributes:
        name: The NAME of the analysis.
        results: The results that were compared, one for each run.
        values: Leaf -> the values of all runs [run, ...].
        mismatches: What differs -> how: "probe", "measure", "program", "paths",
            "structure" or "shape". Hashes that are not known are told, too.
    """

    name: str
    results: tuple[Result, ...]
    values: Mapping[str, np.ndarray]
    mismatches: Mapping[str, str]

    @property
    def steps(self) -> tuple[int, ...]:
        """The true step of each run's result, which may be before the one asked for."""
        return tuple(result.step for result in self.results)

    @functools.cached_property
    def difference(self) -> dict[str, np.ndarray]:
        """The first run minus the second, leaf by leaf; see `between`."""
        return self.between(0, 1)

    def between(self, first: int, second: int) -> dict[str, np.ndarray]:
        """Return the values of one run minus those of another, cell by cell.

        In float64, or int64 for integers. Equal cells are 0, equal non-finite ones
        too; a cell that is NaN in one run only is NaN.

        Args:
            first: The number of a run in `results`.
            second: The number of another one.
        """
        return {
            leaf: cell_difference(stacked[first], stacked[second])
            for leaf, stacked in self.values.items()
        }

    @functools.cached_property
    def mean(self) -> dict[str, np.ndarray]:
        """The mean over the runs, leaf by leaf, float64."""
        return self._over(np.mean)

    @functools.cached_property
    def std(self) -> dict[str, np.ndarray]:
        """The standard deviation over the runs, float64, divided by N as numpy does."""
        return self._over(np.std)

    @property
    def max_abs(self) -> float:
        """The largest absolute difference of the first two; NaN where one is NaN."""
        found = [np.max(np.abs(c)) for c in self.difference.values() if c.size]
        return float(np.max(found)) if found else 0.0

    def __repr__(self) -> str:
        runs = ", ".join(f"{r.run.name}@{r.step}" for r in self.results)
        return f"Comparison({self.name!r}, [{runs}], differing={[*self.mismatches]})"

    def _over(self, reduced: Callable[..., np.ndarray]) -> dict[str, np.ndarray]:
        with np.errstate(invalid="ignore", over="ignore"):
            return {
                leaf: np.asarray(reduced(stacked.astype(np.float64), axis=0))
                for leaf, stacked in self.values.items()
            }


def compare(
    runs: Sequence[Run | str],
    name: str,
    step: int | Sequence[int] | None = None,
    *,
    exact: bool = False,
    root: str | os.PathLike[str] | None = None,
) -> Comparison:
    """Return the values of one analysis in several runs at a step, aligned.

    Args:
        runs: At least two runs, or their names or ids in `root`; one run may be there
            twice, with two steps.
        name: The NAME or key of the analysis.
        step: Training step, >= 0, or one for each run; each shows its nearest earlier
            result, and `steps` says which. None for the last of each.
        exact: Take only results of that very step.
        root: Where names are looked up, as for `Store`.

    Raises:
        NotFound: When a run has no such analysis, or none at that step.
        BadInput: When a result has no values, or no leaf is in all of them.
        LedgerError: When the values are damaged.

    Example:
        >>> import numpy as np
        >>> from theseus_track.records import RunInfo
        >>> from theseus_track.store import LedgerWriter, NewValues, compare
        >>> for seed in (1, 2):
        ...     info = RunInfo(project="p", name=f"s{seed}", id=f"s{seed}", created=0.0)
        ...     norm = NewValues(
        ...         key="my/norm", name="norm", paths=("mlp",), step=100,
        ...         wall_time=0.0, computed=0.0, value=np.float32([seed, 0]),
        ...     )
        ...     with LedgerWriter.create("seeds", info) as writer:
        ...         refs = writer.append(norm)
        >>> both = compare(["s1", "s2"], "norm", 100, root="seeds")
        >>> both.difference[""], both.mean[""], both.mismatches["probe"]
        (array([-1.,  0.]), array([1.5, 0. ]), 'unknown')
    """
    if len(runs) < 2:
        raise BadInput(f"Give at least two runs to compare, not {len(runs)}.")
    steps = [*step] if isinstance(step, Sequence) else [step] * len(runs)
    if len(steps) != len(runs):
        raise BadInput(f"Give one step, or one for each run, not {len(steps)}.")
    store = Store(root) if any(isinstance(run, str) for run in runs) else None
    opened = [_opened(run, store) for run in runs]
    pairs = zip(opened, steps, strict=True)
    results = tuple(_at(run, name, wanted, exact=exact) for run, wanted in pairs)
    values, mismatches = _aligned(results)
    return Comparison(
        name=results[0].name,
        results=results,
        values=values,
        mismatches={**_told(results), **mismatches},
    )


def _opened(run: Run | str, store: Store | None) -> Run:
    if isinstance(run, str):
        return (store or Store()).run(run)
    return run


def _at(run: Run, name: str, step: int | None, *, exact: bool) -> Result:
    series = run[name]
    steps = series.steps
    if step is not None and not exact:
        steps = [known for known in steps if known <= step]
        # Where there is none, the series says which there are.
        step = steps[-1] if steps else step
    try:
        result = series.latest if step is None else series[step]
    except NotFound as error:
        raise NotFound(f"{error} Run: {run.name} (id {run.id}).") from error
    if result.values_record is None:
        raise BadInput(
            f"{result} has no values; a result to compare needs them."
            + (f" It failed: {result.error}" if result.error else "")
        )
    return result


def _aligned(
    results: Sequence[Result],
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    trees = [dict(split_tree(result.values, host_leaf)[1]) for result in results]
    everywhere = [leaf for leaf in trees[0] if all(leaf in tree for tree in trees)]
    elsewhere = dict.fromkeys(
        leaf for tree in trees for leaf in tree if leaf not in everywhere
    )
    same = [leaf for leaf in everywhere if len({t[leaf].shape for t in trees}) == 1]
    told: dict[str, str] = {}
    if elsewhere:
        told["structure"] = f"not in every run: {_listed([*elsewhere])}"
    uneven = [leaf for leaf in everywhere if leaf not in same]
    if uneven:
        shapes = [(leaf, [tree[leaf].shape for tree in trees]) for leaf in uneven]
        told["shape"] = _listed([f"{leaf or 'the value'} {s}" for leaf, s in shapes])
    if not same:
        why = "; ".join(f"{what}: {how}" for what, how in told.items())
        raise BadInput(
            f"{results[0].name!r} has no array that all runs have in one shape: {why}. "
            "Compare results of one select and analyze."
        )
    return {leaf: np.stack([tree[leaf] for tree in trees]) for leaf in same}, told


def _told(results: Sequence[Result]) -> dict[str, str]:
    records = [result.values_record for result in results]
    told: dict[str, str] = {}
    for what in ("probe", "measure", "program"):
        hashes = [getattr(record, what) for record in records]
        if None in hashes:
            told[what] = "unknown" if set(hashes) == {None} else "unknown in some"
        elif len(set(hashes)) > 1:
            told[what] = ", ".join(hash_[:12] for hash_ in hashes)
    paths = {result.paths: None for result in results}
    if len(paths) > 1:
        told["paths"] = " / ".join(_listed(one) for one in paths)
    return told


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(name or "(root)" for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def cell_difference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return x - y as `Comparison.between` describes it; both of one shape."""
    integers = x.dtype.kind in "biu" and x.dtype != np.uint64
    dtype = np.int64 if integers else np.float64
    x, y = x.astype(dtype), y.astype(dtype)
    # What is not equal to itself is NaN; `isnan` takes no integers.
    same = (x == y) | ((x != x) & (y != y))
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.where(same, dtype(0), x - y))
