"""What the training thread hands over to the background, as frozen records."""

import dataclasses
import threading
from collections.abc import Mapping
from typing import Any

from theseus_track.analysis import HostValue, Values
from theseus_track.records import RecordRef, Source

__all__ = [
    "LIVE",
    "DrawJob",
    "MetricsJob",
    "Moment",
    "ProbeJob",
    "ResultJob",
    "ValuesJob",
]

LIVE = Source()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When something belongs to: its step, its wall time, how it came about.

    Attributes:
        step: Training step, >= 0.
        wall_time: In seconds since the epoch, UTC.
        tokens: Tokens seen so far, if known.
        samples: Samples seen so far, if known.
        source: Live, replay or replot.
    """

    step: int
    wall_time: float
    tokens: int | None = None
    samples: int | None = None
    source: Source = LIVE


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ValuesJob:
    """The values of one evaluation, still on the device.

    Attributes:
        values: What `instrument` returned; their host copy has been started.
        moment: When they belong to.
        probe: (name, hash) of the batch, or None when unknown.
        drawn: Set when everything of this evaluation has been drawn.
    """

    values: Values
    moment: Moment
    probe: tuple[str, str] | None
    drawn: threading.Event


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MetricsJob:
    """Scalars of one step; the numbers may still be on the device."""

    metrics: Mapping[str, Any]
    moment: Moment


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProbeJob:
    """A batch to be stored once, on the host."""

    name: str
    hash: str
    batch: Any


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResultJob:
    """A figure or table that the user made on the host, as a copy of our own."""

    name: str
    parts: Any
    moment: Moment


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrawJob:
    """Values that are in the ledger and wait to be drawn.

    Attributes:
        value: The value on the host, or None when it was left in the ledger to
            spare memory.
        host: What is known of it.
        ref: Where the ledger holds it.
        moment: When it belongs to.
        last: Set after drawing, when this is the last one of its evaluation.
    """

    value: Any
    host: HostValue
    ref: RecordRef
    moment: Moment
    last: threading.Event | None
