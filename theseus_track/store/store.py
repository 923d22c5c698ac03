"""A root as people use it: find a run by its name, id or a prefix of either."""

import os
import threading
from collections.abc import Callable, Container, Sequence
from pathlib import Path

from theseus_track.errors import NotFound, describe_unknown
from theseus_track.store.layout import RUN_JSON, RUNS, journals
from theseus_track.store.root import ROOT_VARIABLE, resolve_root
from theseus_track.store.run import Run

__all__ = ["Store"]


class Store:
    """The runs under a root. Reads only, and needs no JAX; thread-safe.

    Args:
        root: The root; `$THESEUS_ROOT`, else `./results`, when None.

    Attributes:
        root: The absolute path of the root.

    Example:
        >>> import numpy as np
        >>> from theseus_track.records import RunInfo
        >>> from theseus_track.store import LedgerWriter, NewValues, Store
        >>> info = RunInfo(project="demo", name="train-gpt", id="r1", created=0.0)
        >>> norm = NewValues(
        ...     key="my/norm", name="norm", paths=("blocks_0",), step=100,
        ...     wall_time=0.0, computed=0.0, value=np.float32([3, 4]),
        ... )
        >>> with LedgerWriter.create("results", info) as writer:
        ...     refs = writer.append(norm)
        >>> Store("results").run("train-gpt")["norm"][100].values
        array([3., 4.], dtype=float32)
    """

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self.root: Path = resolve_root(root)
        self._lock = threading.Lock()
        self._runs: dict[Path, Run] = {}

    def __repr__(self) -> str:
        return f"Store({str(self.root)!r})"

    def runs(self, *, project: str | None = None, name: str | None = None) -> list[Run]:
        """Return the runs, the oldest first, as they are now.

        Args:
            project: Only those of this project.
            name: Only those of this name.

        Raises:
            NotFound: When the root does not exist.
        """
        if not self.root.is_dir():
            raise NotFound(
                f"There is no ledger at {self.root}. Give its root with root=, "
                f"--root or ${ROOT_VARIABLE}."
            )
        with self._lock:
            runs = [self._open(path) for path in self.directories()]
        chosen = [
            run
            for run in runs
            if project in (None, run.project) and name in (None, run.name)
        ]
        return sorted(chosen, key=lambda run: (run.info.created, run.id))

    def run(self, name: str) -> Run:
        """Return the run of this id, else the newest of this name, else by prefix.

        Args:
            name: An id, a name, or the beginning of one.

        Raises:
            NotFound: When there is none, or a prefix fits runs of several names;
                the message lists them.
        """
        runs = self.runs()
        exact: Sequence[Callable[[Run], bool]] = (
            lambda run: run.id == name,
            lambda run: run.name == name,
        )
        for fits in exact:
            found = [run for run in runs if fits(run)]
            if found:
                return found[-1]
        begun = [r for r in runs if r.id.startswith(name) or r.name.startswith(name)]
        if not begun or not name:
            names = [text for run in runs for text in (run.name, run.id)]
            raise NotFound(describe_unknown("run", name, names))
        if len({run.name for run in begun}) > 1:
            shown = "; ".join(f"{r.name} (id {r.id})" for r in begun[:10])
            raise NotFound(
                f"{name!r} is the beginning of {len(begun)} runs: {shown}. "
                "Give a whole name or id."
            )
        return begun[-1]

    def directories(self, known: Container[Path] = ()) -> list[Path]:
        """Return the directories of the runs, by name; none without a root.

        Args:
            known: Directories that hold a run and need no second look.
        """
        try:
            with os.scandir(self.root / RUNS) as entries:
                names = sorted(entry.name for entry in entries)
        except (FileNotFoundError, NotADirectoryError):
            return []
        paths = (self.root / RUNS / name for name in names)
        return [path for path in paths if path in known or _is_run(path)]

    def _open(self, path: Path) -> Run:
        run = self._runs.get(path)
        if run is None:
            run = self._runs[path] = Run(path)
            return run
        return run.refresh()


def _is_run(path: Path) -> bool:
    # A process that died in between leaves a directory without either.
    return path.is_dir() and ((path / RUN_JSON).exists() or any(journals(path)))
