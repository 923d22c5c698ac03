"""Says what a journal line is about without building its record: for an index."""

import dataclasses
import re
import sys

from theseus_track.errors import BadInput
from theseus_track.records import (
    End,
    MetricsRecord,
    Record,
    ResultRecord,
    Resumed,
    ValuesRecord,
    WriterRecord,
    loads,
    record_from_json,
)
from theseus_track.records.strict_json import Json

__all__ = ["METRICS", "OTHER", "RESULT", "VALUES", "Glance", "scan"]

OTHER = 0
VALUES = 1
RESULT = 2
METRICS = 3

_TEXT = rb'"(?:[^"\\]|\\.)*"'
_NUMBER = rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_STEP = rb'"step":([0-9]{1,18}),"wall_time":(' + _NUMBER + rb"),"
_HEAD = rb'"key":(?:null|' + _TEXT + rb'),"name":"([A-Za-z0-9_.-]{1,80})",'
# The lines as our writer writes them, which is ten times faster than parsing. What
# does not look like that, such as the line of another program, is parsed.
_VALUES = re.compile(
    rb'\{"v":1,"type":"values",'
    + _HEAD
    + rb'"paths":\[(?:'
    + _TEXT
    + rb",?)*\],"
    + _STEP
)
_RESULT = re.compile(rb'\{"v":1,"type":"result",' + _HEAD + _STEP)
_SEQ = re.compile(rb',"seq":([0-9]{1,9})\}\Z')
_TOKENS = re.compile(rb',"tokens":(?:null|([0-9]{1,18})),"samples":')
_REF = re.compile(rb'"values":\{"writer":"([^"\\]+)","seq":([0-9]{1,9})\}')
_SKIPPED = (b'{"v":1,"type":"delivered",', b'{"v":1,"type":"beat",')
_NO_ERROR = b',"error":null,"phase":'


@dataclasses.dataclass(slots=True)
class Glance:
    """What an index keeps of a line.

    Attributes:
        kind: VALUES, RESULT, METRICS or OTHER.
        seq: The number that the line carries, or -1.
        name: The NAME of the analysis.
        step: Training step, >= 0.
        wall_time: Seconds since the epoch, UTC.
        tokens: Tokens seen, or -1.
        ref: Of a result, the writer and line of its values.
        failed: Whether it tells of an error.
        metrics: The numbers of a row of metrics.
        record: The record itself, of lines that tell of the writer.
    """

    kind: int
    seq: int = -1
    name: str = ""
    step: int = 0
    wall_time: float = 0.0
    tokens: int = -1
    ref: tuple[str, int] | None = None
    failed: bool = False
    metrics: dict[str, float] | None = None
    record: Record | None = None


def scan(body: bytes) -> Glance | None:
    """Return what a line is about.

    Args:
        body: The JSON of a line whose checksum is right.

    Returns:
        What it says, or None when it makes no sense.
    """
    end = _SEQ.search(body, max(0, len(body) - 20))
    if end is None:
        return _parsed(body)
    seq = int(end[1])
    if body.startswith(_SKIPPED):
        return Glance(OTHER, seq)
    head = _VALUES.match(body)
    if head is not None:
        tokens = _TOKENS.match(body, max(0, body.rfind(b',"tokens":')))
        known = int(tokens[1]) if tokens and tokens[1] else -1
        return Glance(VALUES, seq, _name(head[1]), int(head[2]), float(head[3]), known)
    head = _RESULT.match(body)
    if head is None:
        return _parsed(body)
    # The last one: what comes before is free text of a View, what comes after not.
    found = _REF.match(body, max(0, body.rfind(b'"values":{"writer":')))
    return Glance(
        RESULT,
        seq,
        _name(head[1]),
        int(head[2]),
        float(head[3]),
        ref=(sys.intern(found[1].decode()), int(found[2])) if found else None,
        failed=body.rfind(_NO_ERROR) < 0,
    )


def _name(raw: bytes) -> str:
    return sys.intern(raw.decode("ascii"))


def _parsed(body: bytes) -> Glance | None:
    try:
        value = loads(body)
        record = record_from_json(value) if isinstance(value, dict) else None
    except (ValueError, BadInput, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    seq = value.get("seq")
    number = seq if isinstance(seq, int) and 0 <= seq < 1 << 31 else -1
    return _glance(record, number)


def _glance(record: Record | None, seq: int) -> Glance | None:
    if isinstance(record, MetricsRecord):
        glance = Glance(METRICS, seq, metrics=_numbers(record))
    elif isinstance(record, ValuesRecord):
        glance = Glance(VALUES, seq, sys.intern(record.name))
    elif isinstance(record, ResultRecord):
        ref = record.values
        glance = Glance(
            RESULT,
            seq,
            sys.intern(record.name),
            ref=(ref.writer, ref.seq) if ref else None,
            failed=record.error is not None,
        )
    else:
        told = isinstance(record, WriterRecord | Resumed | End)
        return Glance(OTHER, seq, record=record if told else None)
    glance.step, glance.wall_time = record.step, record.wall_time
    if not 0 <= record.step < 1 << 62:
        return None
    if not isinstance(record, ResultRecord) and record.tokens is not None:
        glance.tokens = min(max(record.tokens, -1), 1 << 62)
    return glance


def _numbers(record: MetricsRecord) -> dict[str, float]:
    found = {name: _number(value) for name, value in record.metrics.items()}
    return {sys.intern(n): value for n, value in found.items() if value is not None}


def _number(value: Json) -> float | None:
    if isinstance(value, int | float):
        return float(value)
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else None
