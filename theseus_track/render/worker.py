"""The render worker: draw the figures that arrive on stdin, until it is closed.

Started as `python -m theseus_track.render.worker` by `process.py`. It knows no
JAX; a figure that refers to a user's module may import it, on the CPU.
"""

import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
import warnings
from typing import IO, TYPE_CHECKING, Any

from theseus_track.render.wire import Hello, Job, Reply, receive, send

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["main"]

_PARENT_POLL_S = 1.0
_MAX_WARNINGS = 20
_NICENESS = 5


def main() -> None:
    """Serve jobs until stdin ends or the parent is gone."""
    # Ctrl-C in the terminal is for the training; the parent ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    jobs, replies = _take_over_pipes()
    hello = receive(jobs)
    if not isinstance(hello, Hello):
        raise TypeError(f"The first message must be a Hello, not {hello!r:.80}.")
    sys.path[:] = hello.path
    if hasattr(os, "nice"):
        os.nice(_NICENESS)  # Training comes first where cores are few.
    inbox: queue.SimpleQueue[Job] = queue.SimpleQueue()
    threading.Thread(target=_read_jobs, args=(jobs, inbox), daemon=True).start()
    threading.Thread(target=_watch_parent, args=(hello.pid,), daemon=True).start()
    while True:
        send(replies, _draw(inbox.get()))


def _take_over_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Keep the pipes to ourselves: a print must never reach the protocol."""
    jobs = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return jobs, replies


def _read_jobs(jobs: IO[bytes], inbox: "queue.SimpleQueue[Job]") -> None:
    """Pass jobs on; end the process at once when the parent closes the pipe."""
    while True:
        try:
            message = receive(jobs)
        except EOFError:
            os._exit(0)
        if isinstance(message, Job):
            inbox.put(message)


def _watch_parent(pid: int) -> None:
    """End the process when its parent died although the pipe is still open.

    A process that the parent forked (a data loader) holds a copy of the pipe, so
    the end of the parent does not always end stdin.
    """
    while os.getppid() == pid:
        time.sleep(_PARENT_POLL_S)
    os._exit(0)


def _draw(job: Job) -> Reply:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reply = _draw_files(job)
    texts = dict.fromkeys(str(warning.message) for warning in caught)
    return Reply(
        files=reply.files,
        warnings=tuple(texts)[:_MAX_WARNINGS],
        error=reply.error,
        traceback=reply.traceback,
        unpickled=reply.unpickled,
    )


def _draw_files(job: Job) -> Reply:
    import matplotlib

    from theseus_track.render.files import figure_files

    params: Any = matplotlib.rcParams
    try:
        figure: Figure = pickle.loads(job.figure)
        for key, value in pickle.loads(job.settings).items():
            # Colour maps that the parent registered (seaborn's are) are not known
            # here; the figure holds its own, and this names only the default.
            if key != "image.cmap" or value in matplotlib.colormaps:
                params._set(key, value)  # noqa: SLF001
    except Exception as error:  # noqa: BLE001 (the parent draws it)
        return _failed(error, unpickled=False)
    try:
        return Reply(files=figure_files(figure))
    except Exception as error:  # noqa: BLE001 (it costs one result)
        return _failed(error, unpickled=True)
    finally:
        _close_all()


def _failed(error: Exception, *, unpickled: bool) -> Reply:
    line = "".join(traceback.format_exception_only(error)).strip().splitlines()[0]
    return Reply(error=line, traceback=traceback.format_exc(), unpickled=unpickled)


def _close_all() -> None:
    """Close figures that were open in the parent's pyplot, and so reopened here."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")


if __name__ == "__main__":
    main()
