"""replot: draws results again from their stored values; needs no model."""

import dataclasses
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Literal, Self

from theseus_track.analysis import AnalysisBase, draw_hash, measure_hash
from theseus_track.analysis.taken import draw, why_not_drawn
from theseus_track.errors import AnalysisFault, BadInput, NotFound, TheseusError
from theseus_track.jobs.rebuild import rebuild
from theseus_track.records import Source
from theseus_track.render import RenderedPart, Renderer, normalise, private_pyplot
from theseus_track.replay.redrawn import Redrawn
from theseus_track.replay.selection import Steps
from theseus_track.replay.target import analysis_of
from theseus_track.sinks.syncing import Tell
from theseus_track.store import LedgerWriter, NewPart, NewResult, Result, Run, Store
from theseus_track.store.claim import Claim

__all__ = ["replot"]

# Seconds between two signs of life of the writer.
_BEAT = 30.0


def replot(
    run: str | Run,
    analyses: Sequence[str | type[AnalysisBase]],
    *,
    steps: Steps | None = None,
    root: str | os.PathLike[str] | None = None,
    again: bool = False,
    strict: bool = False,
    tell: Tell | None = None,
) -> Redrawn:
    """Draw again what an analysis computed, by its `plot` of today.

    Neither the model nor a checkpoint is needed, and nothing is compiled. Older
    drawings stay in the ledger, as superseded. What is drawn by the same code already
    is left alone, so that it goes on where it was interrupted.

    Args:
        run: A run, or its id, its name, or the beginning of one.
        analyses: Keys, `module:Class`, `file.py:Class`, or classes.
        steps: Which steps; default all.
        root: The ledger's root; `$THESEUS_ROOT`, else `./results`, when None.
        again: Draw also what the same code drew, because of what `plot` calls.
        strict: Raise the first fault instead of leaving that result as it is.
        tell: Called after each result.

    Returns:
        What was drawn, what was not and why. Values that other measuring code
        computed are not drawn: they need a replay.

    Raises:
        NotFound: When there is no such run or analysis, or no result of one.
        AnalysisFault: Under `strict`, what `plot` raised first.
        LedgerError: When the root cannot be written, or another process is at it.
    """
    found = run if isinstance(run, Run) else Store(root).run(run)
    if not analyses:
        raise BadInput("No analysis was given. Name one with -a KEY or -a FILE:CLASS.")
    made = _bound(found, [analysis_of(item) for item in analyses])
    with Claim.take(found.dir, "replot"):
        found.refresh()
        chosen = [
            (analysis, result, _status(analysis, result, again=again))
            for analysis in made
            for result in _results(found, analysis, steps or Steps())
        ]
        due = [(analysis, result) for analysis, result, s in chosen if s == "due"]
        with _Redrawer(found, strict=strict) as redrawer:
            for count, (analysis, result) in enumerate(due, 1):
                redrawer.draw(analysis, result)
                if tell is not None:
                    tell(count, len(due))
    return Redrawn(
        run=found.id,
        done=redrawer.done,
        skipped=sum(s == "done" for *_, s in chosen),
        failed=redrawer.failed,
        outdated=_by_name((a, r) for a, r, s in chosen if s == "outdated"),
        empty=redrawer.empty,
    )


Status = Literal["due", "done", "outdated"]


class _Redrawer:
    """Draws results one after the other into a journal made for the first one."""

    def __init__(self, run: Run, *, strict: bool) -> None:
        self._run = run
        self._strict = strict
        self._renderer = Renderer()
        self._writer: LedgerWriter | None = None
        self._beaten = time.monotonic()
        self.done: dict[str, list[int]] = {}
        self.empty: dict[str, list[int]] = {}
        self.failed: dict[tuple[str, int], str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._renderer.close()
        if self._writer is not None:
            self._writer.close()

    def draw(self, analysis: AnalysisBase, result: Result) -> None:
        """Draw one result; a fault leaves the older drawing as it is."""
        try:
            values = result.values_record
            assert values is not None  # chosen by it
            with private_pyplot():
                drawn = draw(analysis, result.values, values.paths, values.valid)
                parts = self._renderer.render(normalise(drawn))
        # The user's plot may raise anything, `sys.exit` included; it costs this one
        # result.
        except (Exception, SystemExit) as error:
            line = str(error).strip().split("\n", 1)[0]
            ours = isinstance(error, TheseusError)
            why = line if ours else f"{type(error).__name__}: {line}"
            if self._strict:
                name = f"{analysis.NAME} at step {result.step}"
                raise AnalysisFault(f"{name}: {why}") from error
            self.failed[analysis.NAME, result.step] = why
            return
        if not parts:
            self.empty.setdefault(analysis.NAME, []).append(result.step)
            return
        self._keep(analysis, result, parts)
        self.done.setdefault(analysis.NAME, []).append(result.step)

    def _keep(
        self,
        analysis: AnalysisBase,
        result: Result,
        parts: Sequence[RenderedPart],
    ) -> None:
        if self._writer is None:
            self._writer = LedgerWriter.create(
                self._run.dir.parent.parent, self._run.info, purpose="replot"
            )
        drawn = result.result_record
        self._writer.append(
            NewResult(
                key=result.key,
                name=result.name,
                step=result.step,
                wall_time=result.wall_time,
                parts=tuple(
                    NewPart(part=p.part, kind=p.kind, blobs=p.blobs, view=p.view)
                    for p in parts
                ),
                paths=result.paths,
                values=drawn.values if drawn is not None else result.ref,
                source=dataclasses.replace(_origin(result), kind="replot"),
                draw=draw_hash(analysis),
            )
        )
        if time.monotonic() - self._beaten > _BEAT:
            self._beaten = time.monotonic()
            self._writer.beat()


def _bound(run: Run, analyses: Sequence[AnalysisBase]) -> Sequence[AnalysisBase]:
    """Give the analyses the hyperparameters of the run, where its job is known."""
    try:
        rebuild(run.info, analyses)
    except TheseusError:
        # A loop of its own, or a job that is gone: `plot` has the defaults then, and
        # a CONFIG that differs makes another `measure`.
        return [type(analysis)() for analysis in analyses]
    return analyses


def _results(run: Run, analysis: AnalysisBase, steps: Steps) -> list[Result]:
    """Return the results with values at the chosen steps; NotFound when none."""
    with_values = {r.step: r for r in run[analysis.NAME] if r.values_record}
    if not with_values:
        raise NotFound(
            f"{analysis.NAME} has no stored values in {run.name} (id {run.id}): there "
            "is nothing to draw again. Compute them with theseus-track replay."
        )
    return [with_values[step] for step in steps.choose(with_values)]


def _status(analysis: AnalysisBase, result: Result, *, again: bool) -> Status:
    values, drawn = result.values_record, result.result_record
    assert values is not None  # chosen by it
    if values.measure not in (None, measure_hash(analysis)):
        return "outdated"
    if why_not_drawn(analysis, values.valid):
        return "done"
    whole = drawn is not None and drawn.error is None
    if whole and drawn is not None and drawn.draw == draw_hash(analysis) and not again:
        return "done"
    return "due"


def _origin(result: Result) -> Source:
    record = result.values_record
    return record.source if record is not None else result.source


def _by_name(
    pairs: Iterator[tuple[AnalysisBase, Result]],
) -> Mapping[str, Sequence[int]]:
    found: dict[str, list[int]] = {}
    for analysis, result in pairs:
        found.setdefault(analysis.NAME, []).append(result.step)
    return found
