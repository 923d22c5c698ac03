"""What a sink is given: one figure, one JSON value or one row of metrics."""

import dataclasses
from collections.abc import Mapping
from typing import TypeAlias

from theseus_track.records.journal import RecordRef
from theseus_track.records.strict_json import Json

__all__ = ["FigureItem", "Item", "JsonItem", "MetricsItem"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FigureItem:
    """A drawn figure at its training step.

    Attributes:
        ref: The ledger record that it comes from; the unit of delivery.
        name: The NAME of the analysis, or the name given to `log_result`.
        part: Its name within the result; "" when there is one.
        step: Training step, >= 0.
        wall_time: When the step was logged, in seconds since the epoch, UTC.
        png: The pixels, as a PNG file.
        pdf: The page, as a PDF file.
        caption: Key, paths and true step in one line.
    """

    ref: RecordRef
    name: str
    part: str
    step: int
    wall_time: float
    png: bytes
    pdf: bytes
    caption: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JsonItem:
    """A JSON result at its training step; the fields as in FigureItem."""

    ref: RecordRef
    name: str
    part: str
    step: int
    wall_time: float
    value: Json
    caption: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MetricsItem:
    """Scalars of one training step; non-finite ones are real floats here."""

    ref: RecordRef
    step: int
    wall_time: float
    metrics: Mapping[str, float]


Item: TypeAlias = FigureItem | JsonItem | MetricsItem
"""What a sink may be given."""
