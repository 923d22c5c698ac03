"""Own one render worker process: start it, exchange messages, end it."""

import contextlib
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import IO

from theseus_track.errors import RenderError
from theseus_track.render.wire import Hello, Job, Reply, receive, send

__all__ = ["JobTimeoutError", "WorkerDiedError", "WorkerProcess"]

_QUIET = {
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""The worker must take neither the accelerator nor the training's cores."""


class WorkerDiedError(RenderError):
    """The worker ended in the middle of a job; a signal is a negative code."""

    def __init__(self, returncode: int) -> None:
        super().__init__(f"The render worker ended with code {returncode}.")
        self.returncode = returncode


class JobTimeoutError(RenderError):
    """A job took longer than it may; its worker was killed."""


class WorkerProcess:
    """One started worker; used by one thread at a time.

    Raises:
        OSError: When the process cannot be started.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            # -P: without it a file named like a standard module in the working
            # directory would be imported instead of that module.
            [sys.executable, "-P", "-m", "theseus_track.render.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(),
            # Its own process group: Ctrl-C in the terminal goes to the training.
            process_group=None if os.name == "nt" else 0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._jobs = self._process.stdin
        self._replies = self._process.stdout
        self._owner = os.getpid()
        self._greeted = False
        self._finalizer = weakref.finalize(self, _abandon, self._process, self._owner)
        # A run that flushes at interpreter exit still needs its worker then, and
        # finalizers run before it; the worker ends by itself when we are gone.
        self._finalizer.atexit = False

    @property
    def pid(self) -> int:
        """The process id of the worker."""
        return int(self._process.pid)

    def usable(self) -> bool:
        """Say whether it runs and is ours: a forked child must start its own."""
        return self._owner == os.getpid() and self._process.poll() is None

    def request(self, job: Job, timeout: float) -> Reply:
        """Have one job done.

        Args:
            job: The figure to draw.
            timeout: Seconds after which the worker is killed.

        Returns:
            The worker's reply.

        Raises:
            WorkerDiedError: When the worker ended before it replied.
            JobTimeoutError: When the time ran out.
        """
        expired = threading.Event()
        # Killing the process also frees a write that blocks on a stopped worker.
        timer = threading.Timer(timeout, self._expire, args=(expired,))
        timer.daemon = True
        timer.start()
        try:
            return self._exchange(job)
        except (OSError, EOFError) as error:
            if expired.is_set():
                raise JobTimeoutError(
                    f"Drawing a figure took longer than {timeout:g} s."
                ) from error
            raise WorkerDiedError(self._process.wait()) from error
        except BaseException:
            # Interrupted half-way, its next reply would answer this job.
            self._process.kill()
            raise
        finally:
            timer.cancel()

    def close(self, timeout: float) -> None:
        """End the worker: ask by closing its stdin, kill it after `timeout` seconds.

        With a timeout of 0 it is killed at once, even while a thread waits for it.
        """
        self._finalizer.detach()
        _end(self._process, timeout)

    def _expire(self, expired: threading.Event) -> None:
        expired.set()
        self._process.kill()

    def _exchange(self, job: Job) -> Reply:
        if not self._greeted:
            path = tuple(entry or str(Path.cwd()) for entry in sys.path)
            send(self._jobs, Hello(path=path, pid=self._owner))
            self._greeted = True
        send(self._jobs, job)
        reply = receive(self._replies)
        if not isinstance(reply, Reply):
            raise EOFError  # noqa: TRY004 (it counts as dead)
        return reply


def _environment() -> dict[str, str]:
    home = str(Path(__file__).parents[2])  # Where `theseus_track` is.
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, **_QUIET, "PYTHONPATH": os.pathsep.join(paths)}


def _abandon(process: "subprocess.Popen[bytes]", owner: int) -> None:
    """End a worker that nobody closed, unless we were forked and it is not ours."""
    if os.getpid() == owner:
        _end(process, 0.0)


def _end(process: "subprocess.Popen[bytes]", timeout: float) -> None:
    """End a worker; without a timeout by force, safe while a thread waits on it."""
    if timeout <= 0:
        process.kill()
    elif process.stdin is not None:
        _close(process.stdin)
    try:
        process.wait(timeout or None)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            _close(stream)


def _close(stream: IO[bytes]) -> None:
    # A worker that is gone did not read everything; nobody will.
    with contextlib.suppress(OSError):
        stream.close()
