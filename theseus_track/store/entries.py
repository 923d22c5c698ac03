"""What a writer is given to append, before its arrays and files have a place."""

import dataclasses
import math
from collections.abc import Mapping
from typing import TypeAlias

from theseus_track.errors import BadInput
from theseus_track.records import (
    Beat,
    Delivered,
    End,
    MetricsRecord,
    RecordRef,
    Resumed,
    Source,
    View,
    check_name,
    check_step,
)
from theseus_track.records.strict_json import Json

__all__ = ["Entry", "NewPart", "NewProbe", "NewResult", "NewValues"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NewValues:
    """What one analysis computed at one step; see `ValuesRecord` for the fields.

    Attributes:
        value: Nested dicts, lists and tuples of numpy arrays, on the host.
        origins: Leaf path -> dtype on the device, where it was upcast.
    """

    key: str
    name: str
    paths: tuple[str, ...]
    step: int
    wall_time: float
    computed: float
    value: object
    origins: Mapping[str, str] = dataclasses.field(default_factory=dict)
    axes: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    valid: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    tokens: int | None = None
    samples: int | None = None
    source: Source = dataclasses.field(default_factory=Source)
    probe: str | None = None
    probe_name: str | None = None
    measure: str | None = None
    draw: str | None = None
    program: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        check_step(self.step)
        _check_time(self.wall_time)
        _check_time(self.computed)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NewPart:
    """One figure or JSON value of a result, as the bytes of its files.

    Attributes:
        part: Its name within the result; "" when there is one.
        kind: "figure" or "json".
        blobs: File suffix ("pdf", "png", "json") -> content.
        view: What a helper drew, if a helper drew it.
    """

    part: str
    kind: str
    blobs: Mapping[str, bytes]
    view: View | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("figure", "json"):
            raise BadInput(f'A part of kind {self.kind!r}; use "figure" or "json".')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NewResult:
    """What `plot` made of values, or why it failed; see `ResultRecord`."""

    key: str | None
    name: str
    step: int
    wall_time: float
    parts: tuple[NewPart, ...] = ()
    paths: tuple[str, ...] = ()
    values: RecordRef | None = None
    source: Source = dataclasses.field(default_factory=Source)
    draw: str | None = None
    error: str | None = None
    phase: str | None = None
    traceback: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        check_step(self.step)
        _check_time(self.wall_time)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NewProbe:
    """A batch to store once: nested dicts, lists and tuples of numpy arrays."""

    name: str
    hash: str
    value: object


Entry: TypeAlias = (
    NewValues | NewProbe | NewResult | MetricsRecord | Delivered | Resumed | Beat | End
)
"""What `LedgerWriter.append` takes."""


def _check_time(seconds: float) -> None:
    if not math.isfinite(seconds):
        raise BadInput(f"A time of {seconds!r} s; give seconds since the epoch.")
