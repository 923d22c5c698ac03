"""Turn the parts of a result into files, in the render worker where possible."""

import dataclasses
import logging
import pickle
import signal
import threading
import traceback
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from theseus_track.errors import RenderError
from theseus_track.records import View, dumps
from theseus_track.records.strict_json import Json
from theseus_track.records.view import view_of
from theseus_track.render.normalise import Parts, figure_of
from theseus_track.render.private import private_pyplot
from theseus_track.render.process import WorkerDiedError, WorkerProcess
from theseus_track.render.wire import Job, Reply, pickle_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["RenderedPart", "Renderer"]

_log = logging.getLogger(__name__)

_ATTEMPTS = 2
_CRASHES = frozenset(
    getattr(signal, name, None)
    for name in ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE")
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPart:
    """One part of a result, as files.

    Attributes:
        part: Its name within the result; "" when there is one.
        kind: "figure" or "json".
        blobs: File suffix -> bytes: "png" and "pdf" of a figure, "json" of a value.
        view: What a plotting helper drew, if one drew the figure.
    """

    part: str
    kind: str
    blobs: Mapping[str, bytes]
    view: View | None = None


class Renderer:
    """Turn parts into files; owns one worker process, started on first use.

    Safe to use from several threads; figures are drawn one at a time. A worker that
    dies is restarted and the job sent again; when it dies again, or when a figure
    cannot be pickled, the figure is drawn in the calling thread.

    Args:
        timeout: Seconds that drawing one figure may take, PNG and PDF together.
    """

    def __init__(self, *, timeout: float = 120.0) -> None:
        self._timeout = timeout
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None
        self._closed = False
        self._told: set[str] = set()

    @property
    def worker_pid(self) -> int | None:
        """The process id of the running worker, or None."""
        worker = self._worker
        return worker.pid if worker is not None and worker.usable() else None

    def render(self, parts: Parts) -> tuple[RenderedPart, ...]:
        """Draw every figure and write every JSON value.

        Call it inside the same `private_pyplot` as `plot`, so that settings that
        `plot` made there apply to the drawing as well.

        Args:
            parts: What `normalise` returned.

        Returns:
            One record per part, in their order. A figure has "png" and "pdf"; a JSON
            value has "json", strict and indented by 2.

        Raises:
            RenderError: When a figure cannot be drawn or takes longer than the
                timeout, or the renderer is closed; the message names the part.
        """
        return tuple(self._render_part(name, part) for name, part in parts.items())

    def close(self, timeout: float = 5.0) -> None:
        """End the worker; idempotent.

        Args:
            timeout: Seconds to wait for the figure that is being drawn and for the
                worker to end; then it is killed.
        """
        self._closed = True
        idle = self._lock.acquire(timeout=max(timeout, 0.0))
        try:
            worker, self._worker = self._worker, None
            if worker is not None:
                worker.close(timeout if idle else 0.0)
        finally:
            if idle:
                self._lock.release()

    def _render_part(self, name: str, part: "Figure | Json") -> RenderedPart:
        figure = figure_of(part)
        if figure is None:
            text = dumps(part, indent=2) + "\n"
            return RenderedPart(part=name, kind="json", blobs={"json": text.encode()})
        where = f"The figure {name!r}" if name else "The figure"
        try:
            blobs = self._draw(figure)
        except RenderError as error:
            raise RenderError(f"{where} could not be drawn. {error}") from error
        return RenderedPart(part=name, kind="figure", blobs=blobs, view=view_of(figure))

    def _draw(self, figure: "Figure") -> Mapping[str, bytes]:
        if self._closed:
            raise RenderError("The renderer is closed; make a new one.")
        from theseus_track.render.files import private_settings

        try:
            settings = pickle.dumps(private_settings())
            job = Job(figure=pickle_figure(figure), settings=settings)
        except Exception as error:  # noqa: BLE001 (any object may refuse)
            self._tell_once("pickle", _IN_THREAD, f"cannot be pickled: {_line(error)}")
            return _draw_here(figure)
        reply = self._ask(job)
        if reply is None:
            return _draw_here(figure)
        self._pass_on_warnings(reply.warnings)
        if not reply.unpickled:
            self._tell_once("load", _IN_THREAD, f"cannot be rebuilt: {reply.error}")
            return _draw_here(figure)
        if reply.error:
            failure = RenderError(reply.error)
            failure.add_note(f"In the render worker:\n{reply.traceback}")
            raise failure
        return reply.files

    def _ask(self, job: Job) -> Reply | None:
        """Have the worker do a job; None when the calling thread should do it."""
        with self._lock:
            for attempt in range(_ATTEMPTS):
                try:
                    return self._started().request(job, self._timeout)
                except WorkerDiedError as error:
                    self._worker = None
                    self._check_death(error, last=attempt + 1 == _ATTEMPTS)
                except OSError as error:
                    reason = f"has no worker: it cannot be started: {error}"
                    self._tell_once("start", _IN_THREAD, reason)
                    return None
        self._tell_once("died", _IN_THREAD, "lost its worker twice")
        return None

    def _check_death(self, error: WorkerDiedError, *, last: bool) -> None:
        """Give up where trying again would hurt more than one lost figure."""
        if self._closed:
            raise RenderError("The renderer was closed meanwhile.") from error
        if last and -error.returncode in _CRASHES:
            # In the calling thread it would take the training down.
            raise RenderError(
                f"It crashed the render worker {_ATTEMPTS} times, with signal "
                f"{signal.Signals(-error.returncode).name}."
            ) from error

    def _started(self) -> WorkerProcess:
        if self._worker is None or not self._worker.usable():
            self._worker = WorkerProcess()
        return self._worker

    def _pass_on_warnings(self, texts: Iterable[str]) -> None:
        for text in texts:
            if text.startswith("Glyph "):
                self._tell_once("glyph", "A figure shows boxes for some text: %s", text)
            else:
                self._tell_once(text, "While a figure was drawn: %s", text)

    def _tell_once(self, topic: str, message: str, detail: str) -> None:
        if topic not in self._told:
            self._told.add(topic)
            _log.warning(message, detail)


_IN_THREAD = (
    "A figure %s. Such figures are drawn in the calling thread, which is slower."
)


def _draw_here(figure: "Figure") -> Mapping[str, bytes]:
    from theseus_track.render.files import figure_files

    try:
        with private_pyplot():
            return figure_files(figure)
    except Exception as error:
        raise RenderError(_line(error)) from error


def _line(error: Exception) -> str:
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[0]
