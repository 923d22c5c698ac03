"""The lines of a ledger's journal, one record class per type of line.

A reader skips fields and types that it does not know, so that an older package
reads a newer ledger. `docs/ledger.md` tells the format to other programs.
"""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, TypeAlias

from theseus_track.records.codec import decode, encode
from theseus_track.records.run import FORMAT_VERSION
from theseus_track.records.strict_json import Json

__all__ = [
    "Beat",
    "Delivered",
    "End",
    "Leaf",
    "MetricsRecord",
    "Part",
    "ProbeRecord",
    "Record",
    "RecordRef",
    "ResultRecord",
    "Resumed",
    "Source",
    "StoredView",
    "ValuesRecord",
    "WriterRecord",
    "record_from_json",
    "record_to_json",
]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RecordRef:
    """Where a record is: the writer's file stem and the line's number in it."""

    writer: str
    seq: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One array in a writer's payload file.

    Attributes:
        leaf: Its path within the value, such as "blocks_0/attn" or "0/mean";
            "" when the value is one array.
        dtype: The numpy name of the stored dtype, little-endian, C order.
        shape: Its shape.
        offset: Where it begins in the payload file, in bytes; 64-byte aligned.
        bytes: Its length in bytes.
        crc: The CRC-32 of those bytes.
        origin: The dtype on the device, where it was upcast ("bfloat16").
    """

    leaf: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    bytes: int
    crc: int
    origin: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """How a result came about.

    Attributes:
        kind: `live`, `replay` or `replot`.
        checkpoint: Of a replay, the path of the checkpoint.
        checkpoint_time: When that was saved, in seconds since the epoch, UTC.
        partial: Whether arrays that the checkpoint lacks were filled in.
    """

    kind: str = "live"
    checkpoint: str | None = None
    checkpoint_time: float | None = None
    partial: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WriterRecord:
    """The first line of a writer: which run it writes and from where.

    Attributes:
        run: The id of the run.
        writer: The file stem of this writer.
        host: The host's name.
        pid: The process on that host.
        started: When the writer was opened, in seconds since the epoch, UTC.
        purpose: `live`, `replay`, `replot`, or `sync`, which only marks what was
            delivered.
        resumed_at: The first step that this attempt may write, or None for the
            first attempt; older live records at or above it are superseded.
        package: The version of theseus-track.
        machine: The process table that `pid` belongs to, or "" when unknown.
    """

    TYPE: ClassVar[str] = "run"
    run: str
    writer: str
    host: str
    pid: int
    started: float
    purpose: str = "live"
    resumed_at: int | None = None
    package: str = ""
    machine: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ValuesRecord:
    """What one analysis computed at one step, acknowledged once its line is written.

    Attributes:
        key: The registry key of the analysis, or its qualified name.
        name: Its NAME.
        paths: The calls that were analysed, in program order.
        step: Training step, >= 0.
        wall_time: When the step was logged, in seconds since the epoch, UTC.
        computed: When the values were computed, in seconds since the epoch.
        tree: The structure of the value (`split_tree`).
        leaves: Its arrays.
        axes: Path -> names of the leading axes that loops added, such as
            ("scan3",).
        valid: Path of a call in a branch -> whether that was taken; in loops a list
            of bools, one for each iteration.
        tokens: Tokens seen at that step, if known.
        samples: Samples seen at that step, if known.
        source: Live, replay or replot.
        probe: The hash of the batch, or None when unknown.
        probe_name: The name that the batch was given.
        measure: Hash of what computes the value (TARGET, METHODS, select, analyze,
            combine, merge, CONFIG).
        draw: Hash of what draws it (plot).
        program: Fingerprint of the traced program.
    """

    TYPE: ClassVar[str] = "values"
    key: str
    name: str
    paths: tuple[str, ...]
    step: int
    wall_time: float
    computed: float
    tree: Json
    leaves: tuple[Leaf, ...]
    axes: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    valid: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    tokens: int | None = None
    samples: int | None = None
    source: Source = Source()
    probe: str | None = None
    probe_name: str | None = None
    measure: str | None = None
    draw: str | None = None
    program: str | None = None

    @property
    def bytes(self) -> int:
        """Bytes of the stored arrays together."""
        return sum(leaf.bytes for leaf in self.leaves)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredView:
    """A View whose arrays are in the payload file; `kind` and the rest as in View."""

    kind: str
    arrays: tuple[Leaf, ...]
    labels: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    ticks: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    scale: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    caption: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One figure or one JSON value of a result.

    Attributes:
        part: Its name within the result; "" when there is one.
        kind: "figure" or "json".
        blobs: File suffix ("pdf", "png", "json") -> SHA-256 of the blob, in hex.
        view: What the helper drew, if a helper drew it.
    """

    part: str
    kind: str
    blobs: Mapping[str, str]
    view: StoredView | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResultRecord:
    """What `plot` made of values, or why nothing could be made.

    Attributes:
        key: The registry key of the analysis; None for `log_result`.
        name: Its NAME.
        step: Training step, >= 0.
        wall_time: When the step was logged, in seconds since the epoch, UTC.
        parts: The figures and JSON values.
        paths: The calls that were analysed.
        values: The record that holds the values, or None.
        source: Live, replay or replot.
        draw: Hash of what drew it.
        error: One line that says what failed, or None.
        phase: Where it failed: trace, select, analyze, combine, plot, render.
        traceback: The traceback as text, or None.
    """

    TYPE: ClassVar[str] = "result"
    key: str | None
    name: str
    step: int
    wall_time: float
    parts: tuple[Part, ...] = ()
    paths: tuple[str, ...] = ()
    values: RecordRef | None = None
    source: Source = Source()
    draw: str | None = None
    error: str | None = None
    phase: str | None = None
    traceback: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MetricsRecord:
    """Scalars of one step; a non-finite number is "NaN", "Infinity", "-Infinity"."""

    TYPE: ClassVar[str] = "metrics"
    step: int
    wall_time: float
    metrics: Mapping[str, Json]
    tokens: int | None = None
    samples: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRecord:
    """A batch that was stored once, so that a replay can use the same one."""

    TYPE: ClassVar[str] = "probe"
    name: str
    hash: str
    tree: Json
    leaves: tuple[Leaf, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A sink's answer for one record.

    Attributes:
        sink: The name of the sink.
        record: The record, of any writer of the run.
        status: `written`, `skipped` or `failed`.
        reason: Why, or where else it went.
        through: The answer holds for every row of metrics in that writer up to this
            line, but for those with an answer of their own.
    """

    TYPE: ClassVar[str] = "delivered"
    sink: str
    record: RecordRef
    status: str
    reason: str = ""
    through: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """Where a continued run went on: an attempt's first step, >= 0, once known.

    It says the same as `resumed_at` of the first line, for a loop that does not
    know the step when it opens the run.
    """

    TYPE: ClassVar[str] = "resumed"
    step: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A sign of life, every 30 s."""

    TYPE: ClassVar[str] = "beat"
    time: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The last line of a writer that closed.

    Attributes:
        time: When, in seconds since the epoch, UTC.
        complete: False when it was closed because the program was interrupted or
            failed: the run is stopped then, not finished.
    """

    TYPE: ClassVar[str] = "end"
    time: float
    complete: bool = True


Record: TypeAlias = (
    WriterRecord
    | ValuesRecord
    | ResultRecord
    | MetricsRecord
    | ProbeRecord
    | Delivered
    | Resumed
    | Beat
    | End
)
"""What one line of a journal may hold."""

_TYPES: dict[str, type[Record]] = {
    cls.TYPE: cls
    for cls in (
        WriterRecord,
        ValuesRecord,
        ResultRecord,
        MetricsRecord,
        ProbeRecord,
        Delivered,
        Resumed,
        Beat,
        End,
    )
}


def record_to_json(record: Record) -> dict[str, Json]:
    """Return a record as the JSON object of its journal line."""
    return {"v": FORMAT_VERSION, "type": record.TYPE, **encode(record)}


def record_from_json(value: Mapping[str, Json]) -> Record | None:
    """Build the record of a journal line.

    Args:
        value: The JSON object of the line.

    Returns:
        The record, or None when the line's type is not known to this version.

    Raises:
        BadInput: When a known type lacks a field or holds a wrong type.
    """
    cls = _TYPES.get(str(value.get("type")))
    return None if cls is None else decode(cls, value)
