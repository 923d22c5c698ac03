"""Items to try a sink with, whose contents tell what they are."""

import struct
import zlib
from collections.abc import Mapping

from theseus_track.records import (
    FigureItem,
    Item,
    JsonItem,
    MetricsItem,
    RecordRef,
    to_json_value,
)

__all__ = ["Items", "tiny_png", "wall_time"]


class Items:
    """Makes items of one run whose records are numbered as in a ledger."""

    def __init__(self, writer: str = "w") -> None:
        """Start at line 1."""
        self._writer = writer
        self._line = 0

    def figure(self, step: int, name: str = "activations", part: str = "") -> Item:
        """Make a figure whose pixels tell its step."""
        return FigureItem(
            ref=self._ref(),
            name=name,
            part=part,
            step=step,
            wall_time=wall_time(step),
            png=tiny_png(step),
            pdf=b"%PDF-1.4\n",
            caption=f"{name} at step {step}",
        )

    def json(
        self, step: int, value: object, name: str = "entropy", part: str = ""
    ) -> Item:
        """Make a JSON value."""
        return JsonItem(
            ref=self._ref(),
            name=name,
            part=part,
            step=step,
            wall_time=wall_time(step),
            value=to_json_value(value),
            caption=f"{name} at step {step}",
        )

    def metrics(self, step: int, metrics: Mapping[str, float]) -> Item:
        """Make a row of metrics."""
        return MetricsItem(
            ref=self._ref(), step=step, wall_time=wall_time(step), metrics=metrics
        )

    def _ref(self) -> RecordRef:
        self._line += 1
        return RecordRef(writer=self._writer, seq=self._line)


def tiny_png(shade: int) -> bytes:
    """Return a PNG file of 4 x 3 pixels whose colour and text tell a number.

    Args:
        shade: Any integer.
    """
    row = b"\0" + bytes([shade % 256, shade // 256 % 256, 0]) * 4
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data))
        + kind
        + data
        + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in (
            (b"IHDR", struct.pack(">IIBBBBB", 4, 3, 8, 2, 0, 0, 0)),
            (b"tEXt", b"Comment\0" + str(shade).encode()),
            (b"IDAT", zlib.compress(row * 3)),
            (b"IEND", b""),
        )
    )


def wall_time(step: int) -> float:
    """Return the wall time of a step in these tests; long past, and exact."""
    return 1_000_000_000.0 + step % 1_000_000
