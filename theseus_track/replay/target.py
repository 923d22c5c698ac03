"""Target: what is replayed: checkpoints, how to run them, and where results go."""

import dataclasses
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from theseus_track.analysis import AnalysisBase
from theseus_track.errors import BadInput, NotFound
from theseus_track.jobs import Recipe, kind_of, load_job, load_recipe, recipe_of
from theseus_track.jobs.place import saved_in
from theseus_track.jobs.rebuild import rebuild
from theseus_track.replay.skeleton import skeleton
from theseus_track.store import Run, Store, resolve_root

__all__ = ["Target", "analysis_of", "find_target"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is replayed.

    Attributes:
        root: The ledger's root.
        run: The run that results go to, or None when it is still to be made.
        name: The name of that run.
        id: Its id.
        directory: Where the checkpoints are.
        recipe: How to run them.
        analyses: The questions, as instances.
        recipe_file: What the recipe was loaded from, or None for a run's own job.
        group: Which checkpoints of the directory, where it holds several groups.
        inline: The NAMEs of the analyses that the run's own job declares; none where
            a recipe is used.
    """

    root: Path
    run: Run | None
    name: str
    id: str
    directory: Path
    recipe: Recipe
    analyses: tuple[AnalysisBase, ...]
    recipe_file: str | None
    group: str | None = None
    inline: frozenset[str] = frozenset()


def find_target(
    what: str | os.PathLike[str],
    analyses: Sequence[str | type[AnalysisBase]],
    *,
    root: str | os.PathLike[str] | None = None,
    recipe: str | None = None,
    into: str | None = None,
    allow_partial: bool = False,
    group: str | None = None,
) -> Target:
    """Find out what a replay is of; runs and writes nothing.

    Args:
        what: A run by its id, name or the beginning of one; or a directory of
            checkpoints.
        analyses: Keys, `module:Class`, `file.py:Class`, or classes.
        root: The ledger's root; `$THESEUS_ROOT`, else `./results`, when None.
        recipe: `FILE[:OBJECT]` that makes the checkpoints runnable. Default: the
            run's own recipe, else its job.
        into: The run that results go to. Default: the run itself; for a directory
            that no run names, a run of its own, the same one each time.
        allow_partial: Draw the initial parameters of the run's own job, which are
            taken where a checkpoint has none that fit.

        group: Which checkpoints, where the directory holds those of several models
            or runs: what `theseus-track checkpoints` lists as GROUP. A group has a
            run of its own.

    Returns:
        The target.

    Raises:
        NotFound: When there is no such run, directory, analysis or recipe.
        BadInput: When nothing says how to run the checkpoints.
    """
    where = resolve_root(root)
    source, directory = _source(where, what, group)
    made = [analysis_of(item) for item in analyses]
    if not made:
        raise BadInput("No analysis was given. Name one with -a KEY or -a FILE:CLASS.")
    goal = source if into is None else Store(where).run(into)
    file = recipe or (source.info.recipe if source is not None else None)
    if file:
        how = load_recipe(file)
    else:
        how = _by_job(source, directory, made, drawn=allow_partial)
    resolved = directory.resolve()
    return Target(
        root=where,
        run=goal,
        name=goal.name if goal else _directory_name(resolved, group),
        id=goal.id if goal else _directory_id(resolved, group),
        directory=resolved,
        recipe=how,
        analyses=tuple(made),
        recipe_file=file,
        group=group,
        inline=frozenset() if file else _declared(source),
    )


def _declared(run: Run | None) -> frozenset[str]:
    if run is None or run.info.job is None:
        return frozenset()
    job: Any = load_job(run.info.job)
    return frozenset(one.NAME for one in job.ANALYSIS)


def _source(
    root: Path, what: str | os.PathLike[str], group: str | None
) -> tuple[Run | None, Path]:
    """Find the run and its checkpoints, or a directory that no run names."""
    text = os.fspath(what)
    try:
        run = Store(root).run(text)
    except NotFound:
        path = Path(text).expanduser()
        if not path.is_dir():
            raise
        return _run_of(root, path, group), path
    directory = saved_in(run)
    if directory is None:
        named = run.info.checkpoints
        place = f"{named} is not there" if named else "none was given to open_run"
        raise NotFound(
            f"The run {run.name!r} (id {run.id}) has no checkpoints: {place}. Give "
            "their directory instead of the run, and --into the run."
        )
    return run, directory


def _run_of(root: Path, directory: Path, group: str | None) -> Run | None:
    """Return the run that was made for a directory by an earlier replay."""
    if not root.is_dir():
        return None
    wanted = _directory_id(directory.resolve(), group)
    return next((run for run in Store(root).runs() if run.id == wanted), None)


def _directory_id(directory: Path, group: str | None) -> str:
    text = str(directory) if group is None else f"{directory}\n{group}"
    return f"replay-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _directory_name(directory: Path, group: str | None) -> str:
    return "-".join(filter(None, [directory.name, (group or "").strip("/_-")]))


def analysis_of(item: str | type[AnalysisBase]) -> AnalysisBase:
    """Make an analysis of its class, or of the text that names it."""
    cls = load_job(item) if isinstance(item, str) else item
    if kind_of(cls) != "analysis":
        raise BadInput(f"{item!r} is a training, not an analysis. Give an analysis.")
    made: AnalysisBase = cls()
    return made


def _by_job(
    source: Run | None,
    directory: Path,
    analyses: Sequence[AnalysisBase],
    *,
    drawn: bool,
) -> Recipe:
    """Build the run's own job again; say how to write a recipe where there is none."""
    if source is None:
        raise BadInput(
            f"Nothing says how to run the checkpoints in {directory}. Write a recipe "
            f"and give it with --recipe FILE.py, such as:\n\n{skeleton(directory)}"
        )
    try:
        trainer = rebuild(source.info, analyses)
        recipe = recipe_of(trainer)
        if not drawn:
            return recipe
        trainer.setup()
        return dataclasses.replace(recipe, variables=trainer.state.variables)
    except (BadInput, NotFound) as error:
        raise BadInput(
            f"{error} Write a recipe and give it with --recipe FILE.py, such as:\n\n"
            f"{skeleton(directory)}"
        ) from error
