"""RunHandle: what a training process logs to; everything behind it is background."""

import atexit
import logging
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import jax
import numpy as np

from theseus_track.analysis import Values, is_off
from theseus_track.capture.replicate import gathered, is_readable
from theseus_track.errors import BadInput, LedgerError, NotFound, describe_unknown
from theseus_track.records import RunInfo, Source, check_name, check_step
from theseus_track.render import normalise, private_pyplot
from theseus_track.render.normalise import figure_of
from theseus_track.run.engine import Engine
from theseus_track.run.jobs import (
    LIVE,
    MetricsJob,
    Moment,
    ProbeJob,
    ResultJob,
    ValuesJob,
)
from theseus_track.run.probe import batch_hash, batch_of
from theseus_track.run.report import CloseReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLOSE_TIMEOUT", "RunHandle", "check_timeout"]

_log = logging.getLogger(__name__)

CLOSE_TIMEOUT = 60.0
"""The longest that the end of a run waits for its trackers, in seconds."""

_SCALAR_BYTES = 64

B = TypeVar("B")


class RunHandle:
    """One training run: log values, metrics and results; made by `open_run`.

    Every method is called on the training thread and returns at once: arrays are
    copied to the host, written to the ledger, drawn and delivered in the
    background. Only a full ledger queue may make a call wait, at most 5 s.

    With several JAX processes, every process makes the same calls. On ranks other than
    0 they write and show nothing; arrays that are spread over processes are put
    together by all of them, in the order of the calls.
    """

    def __init__(
        self,
        info: RunInfo,
        root: Path,
        engine: Engine | None,
        probes: Mapping[str, str] | None = None,
        *,
        close_timeout: float = CLOSE_TIMEOUT,
    ) -> None:
        """Tie the parts together.

        Args:
            info: The run.
            root: The ledger's root.
            engine: Everything behind; None on ranks that write nothing.
            probes: Name -> hash of the batches that the run has stored before.
            close_timeout: The longest that `close` waits unless told otherwise, in
                seconds; at interpreter exit too.
        """
        self.info = info
        self.root = root
        self._engine = engine
        self._probes: dict[str, str] = dict(probes or {})
        self._close_timeout = close_timeout
        self._report: CloseReport | None = None
        self._told_off = False
        self._told_closed = False
        if engine is not None:
            atexit.register(self._at_exit)

    @property
    def id(self) -> str:
        """The identity of the run."""
        return self.info.id

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.info.name

    @property
    def dir(self) -> Path | None:
        """Where the ledger of this run is, or None on ranks that write nothing."""
        return None if self._engine is None else self._engine.writer.run_dir

    def log(
        self,
        values: Values,
        *,
        step: int,
        wall_time: float | None = None,
        tokens: int | None = None,
        samples: int | None = None,
        probe: str | None = None,
        source: Source = LIVE,
        wait: bool = False,
    ) -> None:
        """Keep, draw and show what the analyses of one evaluation returned.

        Args:
            values: What the instrumented step returned; its arrays may still be
                computing.
            step: The training step that they belong to, >= 0.
            wall_time: When that step was, in seconds since the epoch, UTC; default
                now.
            tokens: Tokens seen so far, if known.
            samples: Samples seen so far, if known.
            probe: The name given to `probe`, if the batch was stored.
            source: How the values came about: by the training itself, or by a replay
                of a checkpoint.
            wait: Return after everything has been drawn, is in the ledger and was
                handed to the trackers: then it joins the row of W&B that you are
                filling now. A tracker that does not answer is waited for 10 s.

        Raises:
            BadInput: When `step` is no step or `values` are no Values.
            NotFound: When `probe` was never stored.
            TheseusError: Under `strict`, the oldest fault since the last call.
        """
        if not isinstance(values, Values):
            raise BadInput(
                f"run.log takes the Values of an instrumented step, not a "
                f"{type(values).__name__}. Use log_metrics for scalars and log_result "
                "for figures and tables."
            )
        moment = _moment(step, wall_time, tokens, samples, source)
        # Before anything in which rank 0 may differ: the other ranks wait for it here.
        values = gathered(values)
        engine = self._ready()
        if engine is None or self._is_off():
            return
        engine.begin(moment.step)
        batch = None if probe is None else (probe, self._probe_hash(probe))
        _start_copies(values)
        drawn = threading.Event()
        job = ValuesJob(values=values, moment=moment, probe=batch, drawn=drawn)
        if engine.recorder.submit(job, _bytes(values)) and wait:
            drawn.wait()
            engine.hand_over()
            engine.check()

    def log_metrics(
        self,
        metrics: Mapping[str, Any],
        *,
        step: int,
        wall_time: float | None = None,
        tokens: int | None = None,
        samples: int | None = None,
    ) -> None:
        """Keep and show scalars of one step.

        Args:
            metrics: Name -> number, on host or device; NaN and infinity are kept.
            step: The training step that they belong to, >= 0.
            wall_time: When that step was, in seconds since the epoch; default now.
            tokens: Tokens seen so far, if known.
            samples: Samples seen so far, if known.

        Raises:
            BadInput: When `step` is no step or a name is no text. A value that is
                not one real number is left out and told once.
            TheseusError: Under `strict`, the oldest fault since the last call.
        """
        moment = _moment(step, wall_time, tokens, samples)
        for name in metrics:
            if not isinstance(name, str) or not name:
                raise BadInput(f"The metric name {name!r} is no text. Use a text.")
        metrics = gathered(dict(metrics))
        engine = self._ready()
        if engine is None:
            return
        engine.begin(moment.step)
        _start_copies(metrics)
        job = MetricsJob(metrics=metrics, moment=moment)
        engine.recorder.submit(job, _SCALAR_BYTES * len(metrics))

    def log_result(
        self, name: str, result: object, *, step: int, wall_time: float | None = None
    ) -> None:
        """Keep and show a figure or table that was made on the host.

        Args:
            name: What it is called everywhere, `[A-Za-z0-9_.-]{1,80}`.
            result: What an analysis' `plot` may return; a figure is copied, so that
                the caller may change or close it afterwards.
            step: The training step that it belongs to, >= 0.
            wall_time: When that step was, in seconds since the epoch; default now.

        Raises:
            BadInput: When `step` or `name` cannot be used.
            RenderError: When `result` is nothing that can be kept.
            TheseusError: Under `strict`, the oldest fault since the last call.
        """
        moment = _moment(step, wall_time, None, None)
        check_name(name)
        parts = normalise(result)
        engine = self._ready()
        if engine is None or not parts:
            return
        engine.begin(moment.step)
        copies = {part: _own_copy(value) for part, value in parts.items()}
        engine.drawer.submit_result(ResultJob(name=name, parts=copies, moment=moment))

    @overload
    def probe(self, name: str, batch: Callable[[], B]) -> B: ...

    @overload
    def probe(
        self, name: str, batch: str | os.PathLike[str]
    ) -> dict[str, np.ndarray]: ...

    @overload
    def probe(self, name: str, batch: B) -> B: ...

    def probe(self, name: str, batch: Any) -> Any:
        """Store the batch that analyses look at, once, so that a replay can use it.

        Args:
            name: Such as "val".
            batch: A pytree (dicts, lists, tuples) of arrays, a function that makes
                one, or the path of an `.npz` file.

        Returns:
            The batch. Its hash goes with every result logged with
            `probe=name`, so that results of different batches are told apart.

        Raises:
            BadInput: When the name is taken by another batch or cannot be used.
        """
        check_name(name)
        batch = batch_of(batch)
        whole = gathered(batch)
        engine = self._ready()
        if engine is None:
            return batch
        host = jax.device_get(whole)
        digest = batch_hash(host)
        known = self._probes.get(name)
        if known not in (None, digest):
            raise BadInput(
                f"The probe {name!r} is another batch already (hash {known}, now "
                f"{digest}). Give the new batch another name."
            )
        if known is None:
            self._probes[name] = digest
            job = ProbeJob(name=name, hash=digest, batch=host)
            engine.recorder.submit(job, _bytes(host))
        return batch

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all is recorded, drawn and delivered.

        Args:
            timeout: The longest wait, in seconds; None for that of `close`.

        Returns:
            Whether nothing is pending.
        """
        if self._engine is None or self._report is not None:
            return True
        return self._engine.flush(self._patience(timeout))

    def close(
        self, timeout: float | None = None, *, complete: bool = True
    ) -> CloseReport:
        """Flush, then end this run's writer and sinks; doing it twice is harmless.

        Args:
            timeout: The longest wait, in seconds; None for the `close_timeout` of
                `open_run`.
            complete: Whether the program did what it was to do; else the run counts
                as stopped, not as finished. Leaving a `with` block by an exception
                does this by itself.

        Returns:
            What is recorded and delivered, and what is not; what a sink did not
            take is in the ledger.
        """
        if self._report is not None:
            return self._report
        if self._engine is None:
            self._report = CloseReport(
                run=self.id, recorded=True, lost=0, drawn=True, sinks=(), faults=()
            )
            return self._report
        atexit.unregister(self._at_exit)
        self._report = self._engine.close(self._patience(timeout), complete=complete)
        # A line for each sink; it is a warning where something is missing.
        level = logging.INFO if self._report.complete else logging.WARNING
        _log.log(level, "%s", self._report)
        return self._report

    def __enter__(self) -> Self:
        """Return the handle; leaving the block closes it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the run; after an exception it counts as stopped."""
        ended_well = isinstance(error, SystemExit) and not error.code
        self.close(complete=error is None or ended_well)

    def __repr__(self) -> str:
        return f"RunHandle({self.info.project}/{self.name}, id={self.id!r})"

    def _ready(self) -> Engine | None:
        """Return the engine if this process writes and the run is open."""
        if self._engine is None:
            return None
        self._engine.check()
        if self._report is None:
            self._engine.notice()
            return self._engine
        error = LedgerError(
            f"The run {self.id!r} is closed: nothing more is kept. Close it after the "
            "last log, or open it again by open_run(id=...)."
        )
        if self._engine.strict:
            raise error
        if not self._told_closed:
            self._told_closed = True
            _log.warning("%s", error)
        return None

    def _at_exit(self) -> None:
        # What ends the program without being caught is left there by Python.
        self.close(complete=getattr(sys, "last_value", None) is None)

    def _patience(self, timeout: float | None) -> float:
        return self._close_timeout if timeout is None else check_timeout(timeout)

    def _is_off(self) -> bool:
        if not is_off():
            return False
        if not self._told_off:
            self._told_off = True
            _log.warning("THESEUS_TRACK=off: no analysis runs and none is recorded.")
        return True

    def _probe_hash(self, name: str) -> str:
        if name in self._probes:
            return self._probes[name]
        raise NotFound(
            describe_unknown("probe", name, self._probes)
            + " Store it with run.probe(name, batch) first."
        )


def check_timeout(seconds: float) -> float:
    """Return a time limit, if it is one.

    Raises:
        BadInput: When it is no finite number >= 0.
    """
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if number and 0 <= seconds <= threading.TIMEOUT_MAX:
        return float(seconds)
    raise BadInput(
        f"{seconds!r} is no time limit. Give seconds >= 0, such as 60; for an end that "
        "waits as long as it takes, a large number."
    )


def _moment(
    step: object,
    wall_time: float | None,
    tokens: int | None,
    samples: int | None,
    source: Source = LIVE,
) -> Moment:
    when = time.time() if wall_time is None else wall_time
    if isinstance(when, bool) or not isinstance(when, int | float):
        raise BadInput(
            f"wall_time={wall_time!r} is no time: give seconds since the epoch, such "
            "as time.time()."
        )
    return Moment(
        step=check_step(step),
        wall_time=float(when),
        tokens=_count("tokens", tokens),
        samples=_count("samples", samples),
        source=source,
    )


def _count(name: str, value: object) -> int | None:
    if value is None:
        return None
    try:
        return check_step(value)
    except BadInput as error:
        raise BadInput(f"{name}={value!r} is no count: give an int >= 0.") from error


def _start_copies(tree: Any) -> None:
    for leaf in jax.tree.leaves(tree):
        # What this process does not hold is told when its turn comes.
        if isinstance(leaf, jax.Array) and is_readable(leaf):
            leaf.copy_to_host_async()


def _bytes(tree: Any) -> int:
    return sum(getattr(leaf, "nbytes", _SCALAR_BYTES) for leaf in jax.tree.leaves(tree))


def _own_copy(value: "Figure | Any") -> Any:
    """Copy a figure, so that the caller may go on changing theirs."""
    if figure_of(value) is None:
        return value
    try:
        # Unpickling a pyplot figure opens it again, so not in the user's pyplot.
        with private_pyplot():
            return pickle.loads(pickle.dumps(value))
    # Whatever an artist on the figure raises: then the figure itself is drawn, as
    # it is when its turn comes.
    except Exception:  # noqa: BLE001
        return value
