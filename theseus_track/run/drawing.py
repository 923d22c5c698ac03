"""The thread that draws: `plot`, rendering, the result in the ledger, the sinks."""

import collections
import dataclasses
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from theseus_track.analysis import draw_hash
from theseus_track.analysis.taken import draw
from theseus_track.errors import (
    AnalysisFault,
    LedgerError,
    TheseusError,
)
from theseus_track.records import FigureItem, Item, JsonItem, RecordRef, loads
from theseus_track.records.caption import caption_of
from theseus_track.render import RenderedPart, Renderer, normalise, private_pyplot
from theseus_track.run.courier import Courier
from theseus_track.run.jobs import DrawJob, ResultJob
from theseus_track.run.queue import ByteQueue
from theseus_track.run.troubles import Troubles
from theseus_track.store import LedgerWriter, NewPart, NewResult

__all__ = ["Drawer"]

KEPT_BYTES = 64 << 20
"""Values that wait to be drawn are kept in memory up to this; above it they are read
back from the ledger when their turn comes."""

Reread = Callable[[RecordRef], Any]


class Drawer:
    """Draws values that the ledger holds, one after the other, on one thread.

    `plot` runs here and not in the render process: it may use anything of the
    user's (tokenizers, classes of a notebook) without being pickled, and building
    a figure is a small part of the cost; turning it into files is the large part,
    and that happens in the render process.
    """

    def __init__(
        self,
        *,
        writer: LedgerWriter,
        renderer: Renderer,
        courier: Courier,
        troubles: Troubles,
        reread: Reread,
    ) -> None:
        """Start the thread.

        Args:
            writer: Where results go.
            renderer: What turns figures into files.
            courier: Who takes them to the sinks.
            troubles: Where faults are told.
            reread: Reads a value back from the ledger.
        """
        self._writer = writer
        self._renderer = renderer
        self._courier = courier
        self._troubles = troubles
        self._reread = reread
        self._queue: ByteQueue[DrawJob | ResultJob] = ByteQueue(None)
        self._steps: collections.Counter[int] = collections.Counter()
        self._steps_lock = threading.Lock()
        self._thread = threading.Thread(
            target=self._work, name="theseus-draw", daemon=True
        )
        self._thread.start()

    def submit(self, job: DrawJob, size: int) -> None:
        """Queue values for drawing; never waits.

        Args:
            job: What to draw; `value` holds the arrays.
            size: What they weigh, in bytes.
        """
        self._expect(job.moment.step)
        if self._queue.bytes + size > KEPT_BYTES:
            left = DrawJob(
                value=None, host=job.host, ref=job.ref, moment=job.moment, last=job.last
            )
            self._queue.put(left, 0, timeout=0.0)
        else:
            self._queue.put(job, size, timeout=0.0)

    def submit_result(self, job: ResultJob) -> None:
        """Queue figures and tables that need no `plot`; never waits."""
        self._expect(job.moment.step)
        self._queue.put(job, 0, timeout=0.0)

    def undrawn(self) -> int | None:
        """Return the lowest step of which something is not drawn yet, or None."""
        with self._steps_lock:
            return min(self._steps, default=None)

    def join(self, deadline: float) -> bool:
        """Wait until all is drawn, or until `deadline` on the monotonic clock."""
        return self._queue.join(deadline)

    def close(self, deadline: float) -> None:
        """Draw what is queued, then stop the thread and the render process."""
        self._queue.close()
        self._thread.join(max(0.0, deadline - time.monotonic()))
        self._renderer.close(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while not self._queue.closed:
            job = self._queue.get(timeout=1.0)
            if job is None:
                continue
            try:
                self._draw(job) if isinstance(job, DrawJob) else self._draw_result(job)
            except LedgerError as error:
                self._troubles.report("ledger", error)
            finally:
                if isinstance(job, DrawJob) and job.last is not None:
                    job.last.set()
                self._arrived(job.moment.step)
                self._queue.done()

    def _expect(self, step: int) -> None:
        with self._steps_lock:
            self._steps[step] += 1

    def _arrived(self, step: int) -> None:
        with self._steps_lock:
            self._steps[step] -= 1
            if not self._steps[step]:
                del self._steps[step]

    def _draw_result(self, job: ResultJob) -> None:
        common: dict[str, Any] = {
            "key": None,
            "name": job.name,
            "step": job.moment.step,
            "wall_time": job.moment.wall_time,
            "source": job.moment.source,
        }
        try:
            rendered = self._renderer.render(job.parts)
        # As above: drawing runs code of the user's artists.
        except BaseException as error:  # noqa: BLE001
            message = f"{job.name}, render: {_one_line(error)}"
            self._keep(NewResult(error=message, phase="render", **common))
            self._troubles.report(f"{job.name} render", AnalysisFault(message))
            return
        self._keep(NewResult(parts=tuple(map(_new_part, rendered)), **common))

    def _draw(self, job: DrawJob) -> None:
        host = job.host
        phase = "plot"
        try:
            value = self._reread(job.ref) if job.value is None else job.value
            with private_pyplot():
                drawn = draw(host.analysis, value, host.entry.paths, host.valid)
                parts = normalise(drawn)
                phase = "render"
                rendered = self._renderer.render(parts)
        # The user's plot may raise anything, `sys.exit` included, and this thread
        # draws for every analysis; it costs this one result.
        except BaseException as error:  # noqa: BLE001
            self._fail(job, phase, error)
            return
        if rendered:
            told = _told_dtype(job.host.origins)
            self._keep(_result(job, parts=tuple(_new_part(p, told) for p in rendered)))

    def _keep(self, result: NewResult) -> None:
        """Write a result to the ledger, then offer it to the sinks."""
        (ref,) = self._writer.append(result)
        if self._courier and result.parts:
            self._courier.send(ref, _items(ref, result, self._writer.run_dir.name))

    def _fail(self, job: DrawJob, phase: str, error: BaseException) -> None:
        entry = job.host.entry
        message = f"{entry.name} ({entry.key}), {phase}: {_one_line(error)}"
        self._writer.append(
            _result(
                job,
                error=message,
                phase=phase,
                traceback="".join(traceback.format_exception(error)),
            )
        )
        fault = AnalysisFault(message)
        fault.__cause__ = error
        self._troubles.report(f"{entry.name} {phase}", fault)


def _items(ref: RecordRef, result: NewResult, run: str) -> list[Item]:
    """Turn a result into what the sinks are given, one item for each part."""
    return [_item(ref, result, part, run) for part in result.parts]


def _item(ref: RecordRef, result: NewResult, part: NewPart, run: str) -> Item:
    caption = caption_of(
        result.name,
        result.key,
        result.paths,
        result.step,
        run=run,
        shown=part.view.caption if part.view else "",
    )
    common: Mapping[str, Any] = {
        "ref": ref,
        "name": result.name,
        "part": part.part,
        "step": result.step,
        "wall_time": result.wall_time,
        "caption": caption,
    }
    if part.kind == "json":
        return JsonItem(value=loads(part.blobs["json"]), **common)
    return FigureItem(png=part.blobs["png"], pdf=part.blobs["pdf"], **common)


def _one_line(error: BaseException) -> str:
    first = str(error).strip().split("\n", 1)[0]
    if isinstance(error, TheseusError):
        return first
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _new_part(part: RenderedPart, told: str = "") -> NewPart:
    view = part.view
    if view is not None and told:
        view = dataclasses.replace(view, caption=f"{view.caption}; {told}")
    return NewPart(part=part.part, kind=part.kind, blobs=part.blobs, view=view)


def _told_dtype(origins: Mapping[str, str]) -> str:
    """Say of which dtype values were that numpy does not know, if any were."""
    dtypes = sorted(set(origins.values()))
    return f"{', '.join(dtypes)} on the device" if dtypes else ""


def _result(job: DrawJob, **fields: Any) -> NewResult:
    entry = job.host.entry
    return NewResult(
        key=entry.key,
        name=entry.name,
        step=job.moment.step,
        wall_time=job.moment.wall_time,
        paths=entry.paths,
        values=job.ref,
        source=job.moment.source,
        draw=draw_hash(entry.analysis),
        **fields,
    )
