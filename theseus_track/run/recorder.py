"""The thread that writes the ledger: host copies in, acknowledged records out."""

import threading
import time
from collections.abc import Mapping
from typing import Any, TypeAlias

import jax
import numpy as np

from theseus_track.analysis import (
    HostValue,
    draw_hash,
    measure_hash,
    to_host,
)
from theseus_track.analysis.taken import why_not_drawn
from theseus_track.errors import AnalysisFault, BadInput, LedgerError, TheseusError
from theseus_track.records import MetricsItem, MetricsRecord, RecordRef
from theseus_track.records.strict_json import Json, to_json_value
from theseus_track.run.courier import Courier
from theseus_track.run.drawing import Drawer
from theseus_track.run.jobs import (
    DrawJob,
    MetricsJob,
    Moment,
    ProbeJob,
    ValuesJob,
)
from theseus_track.run.queue import ByteQueue
from theseus_track.run.troubles import Troubles
from theseus_track.store import LedgerWriter, NewProbe, NewResult, NewValues

__all__ = ["Recorder"]

CAPACITY = 256 << 20
"""What may wait for the ledger, in bytes; above it the training thread waits."""

PATIENCE = 5.0
"""The longest that the training thread waits for room, in seconds."""

BEAT = 30.0
"""Seconds between two signs of life."""

Job: TypeAlias = ValuesJob | MetricsJob | ProbeJob


class Recorder:
    """Writes what the training thread hands over, in order, on one thread."""

    def __init__(
        self,
        *,
        writer: LedgerWriter,
        drawer: Drawer,
        courier: Courier,
        troubles: Troubles,
        capacity: int = CAPACITY,
    ) -> None:
        """Start the thread.

        Args:
            writer: The ledger.
            drawer: Who draws the values once they are in the ledger.
            courier: Who takes metrics to the sinks.
            troubles: Where faults are told.
            capacity: What may wait, in bytes.
        """
        self._writer = writer
        self._drawer = drawer
        self._courier = courier
        self._troubles = troubles
        self._queue: ByteQueue[Job] = ByteQueue(capacity)
        self._told_faults: set[tuple[str, str]] = set()
        self._last_beat = time.monotonic()
        self.lost = 0
        self._thread = threading.Thread(
            target=self._work, name="theseus-ledger", daemon=True
        )
        self._thread.start()

    def submit(self, job: Job, size: int) -> bool:
        """Hand over a job; the only place where the training thread may wait.

        Args:
            job: What to write.
            size: What it holds, in bytes.

        Returns:
            False when there was no room for 5 s; the job is then lost, counted and
            named at close.
        """
        if self._queue.put(job, size, timeout=PATIENCE):
            return True
        self.lost += 1
        self._lost(
            LedgerError(
                f"{_what(job)} was lost: the ledger could not be written for "
                f"{PATIENCE:.0f} s while {self._queue.bytes:,} bytes waited. Check the "
                "disk of the root, or log smaller values."
            )
        )
        return False

    def join(self, deadline: float) -> bool:
        """Wait until all is in the ledger, or until `deadline` (monotonic clock)."""
        return self._queue.join(deadline)

    def close(self, deadline: float) -> None:
        """Write what is queued, then stop the thread."""
        self._queue.close()
        self._thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while not self._queue.closed:
            job = self._queue.get(timeout=1.0)
            if job is not None:
                self._try(job)
            self._beat()

    def _try(self, job: Job) -> None:
        try:
            self._write(job)
        # A device array may fail in any way when it is read; the thread that keeps
        # the ledger must outlive it.
        except Exception as error:  # noqa: BLE001
            self.lost += 1
            if isinstance(error, LedgerError):
                # As everybody says it who finds the disk full: told once.
                self._lost(error)
            else:
                reason = error if isinstance(error, TheseusError) else repr(error)
                self._lost(LedgerError(f"{_what(job)} was lost: {reason}"))
            if isinstance(job, ValuesJob):
                job.drawn.set()
        finally:
            self._queue.done()

    def _write(self, job: Job) -> None:
        match job:
            case ValuesJob():
                self._write_values(job)
            case MetricsJob():
                self._write_metrics(job)
            case ProbeJob():
                value = jax.device_get(job.batch)
                self._writer.append(NewProbe(name=job.name, hash=job.hash, value=value))

    def _write_values(self, job: ValuesJob) -> None:
        hosts = to_host(job.values)
        self._write_faults(hosts, job.moment)
        kept = [host for host in hosts if host.entry.fault is None]
        # One evaluation is one commit.
        refs = self._writer.append(*(_new_values(host, job) for host in kept))
        pairs = [
            (host, ref)
            for host, ref in zip(kept, refs, strict=True)
            if self._worth_drawing(host, ref, job.moment)
        ]
        for position, (host, ref) in enumerate(pairs, start=1):
            last = job.drawn if position == len(pairs) else None
            draw = DrawJob(
                value=host.value, host=host, ref=ref, moment=job.moment, last=last
            )
            size = sum(leaf.nbytes for leaf in jax.tree.leaves(host.value))
            self._drawer.submit(draw, size)
        if not pairs:
            job.drawn.set()

    def _worth_drawing(self, host: HostValue, ref: RecordRef, moment: Moment) -> bool:
        why = why_not_drawn(host.analysis, host.valid)
        if why is not None:
            no = _no_result(host, moment, error=why, phase="branch", values=ref)
            self._writer.append(no)
        return why is None

    def _write_faults(self, hosts: list[HostValue], moment: Moment) -> None:
        """Record a fault of tracing the first time that it comes."""
        for host in hosts:
            fault = host.entry.fault
            if fault is None or (host.entry.name, fault.message) in self._told_faults:
                continue
            self._told_faults.add((host.entry.name, fault.message))
            self._writer.append(
                _no_result(
                    host,
                    moment,
                    error=fault.message,
                    phase=fault.phase,
                    traceback=fault.traceback,
                )
            )
            self._troubles.report(
                f"{host.entry.name} {fault.phase}", AnalysisFault(fault.message)
            )

    def _write_metrics(self, job: MetricsJob) -> None:
        numbers = self._numbers(jax.device_get(dict(job.metrics)))
        record = MetricsRecord(
            step=job.moment.step,
            wall_time=job.moment.wall_time,
            tokens=job.moment.tokens,
            samples=job.moment.samples,
            metrics={name: to_json_value(number) for name, number in numbers.items()},
        )
        (ref,) = self._writer.append(record)
        if self._courier:
            item = MetricsItem(
                ref=ref,
                step=record.step,
                wall_time=record.wall_time,
                metrics={name: float(number) for name, number in numbers.items()},
            )
            self._courier.send(ref, [item])

    def _numbers(self, metrics: Mapping[str, Any]) -> dict[str, int | float]:
        """Keep what is a number; the rest costs one message, not the row."""
        numbers = {}
        for name, value in metrics.items():
            try:
                numbers[name] = _number(name, value)
            except BadInput as error:
                self._troubles.report(f"metric {name}", error)
        return numbers

    def _beat(self) -> None:
        if time.monotonic() - self._last_beat < BEAT:
            return
        self._last_beat = time.monotonic()
        self._courier.mark_metrics()
        try:
            self._writer.beat()
        except LedgerError as error:
            self._troubles.report("ledger", error)

    def _lost(self, error: LedgerError) -> None:
        self._troubles.report("ledger", error)


def _new_values(host: HostValue, job: ValuesJob) -> NewValues:
    entry = host.entry
    name, digest = job.probe or (None, None)
    return NewValues(
        key=entry.key,
        name=entry.name,
        paths=entry.paths,
        step=job.moment.step,
        wall_time=job.moment.wall_time,
        computed=time.time(),
        value=host.stored,
        origins=host.origins,
        axes=_axes(entry.axes),
        valid=dict(host.valid),
        tokens=job.moment.tokens,
        samples=job.moment.samples,
        source=job.moment.source,
        probe=digest,
        probe_name=name,
        measure=measure_hash(entry.analysis),
        draw=draw_hash(entry.analysis),
        program=entry.program,
    )


def _no_result(
    host: HostValue,
    moment: Moment,
    *,
    error: str,
    phase: str,
    traceback: str | None = None,
    values: RecordRef | None = None,
) -> NewResult:
    return NewResult(
        key=host.entry.key,
        name=host.entry.name,
        step=moment.step,
        wall_time=moment.wall_time,
        paths=host.entry.paths,
        values=values,
        source=moment.source,
        error=error,
        phase=phase,
        traceback=traceback,
    )


def _axes(axes: tuple[tuple[str, tuple[str, ...]], ...]) -> Mapping[str, Json]:
    return {path: list(names) for path, names in axes}


def _number(name: str, value: Any) -> int | float:
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind in "OUSc":
        raise BadInput(
            f"The metric {name!r} was left out: {value!r:.60} is not one real number. "
            "Log arrays and texts with run.log_result."
        )
    item = array.astype(np.float64).item() if array.dtype.kind == "V" else array.item()
    return int(item) if isinstance(item, bool) else item


def _what(job: Job) -> str:
    match job:
        case ValuesJob():
            return f"the evaluation of step {job.moment.step}"
        case MetricsJob():
            return f"the metrics of step {job.moment.step}"
        case ProbeJob():
            return f"the probe {job.name!r}"
