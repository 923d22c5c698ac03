"""Event files, the records that TensorBoard reads; tensorboardX stays in here.

Its own writers queue events for another thread and lose up to two
minutes of them at a crash. Here an event is one unbuffered append: when `write`
returns, a server reads it and a `kill -9` keeps it.
"""

import contextlib
import os
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import tensorboardX.proto.event_pb2 as event_pb2
import tensorboardX.proto.summary_pb2 as summary_pb2
import tensorboardX.proto.tensor_pb2 as tensor_pb2
import tensorboardX.proto.tensor_shape_pb2 as shape_pb2
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from tensorboardX.record_writer import masked_crc32c

from theseus_track.errors import BadInput

__all__ = [
    "Event",
    "EventFile",
    "Value",
    "event_files",
    "image_value",
    "last_steps",
    "next_name",
    "read_events",
    "scalar_value",
    "text_value",
]

# The generated classes of protocol buffers have no types.
Event: TypeAlias = Any
Value: TypeAlias = Any

_PREFIX = "events.out.tfevents."
_HEADER = struct.Struct("<QI")
_CRC = struct.Struct("<I")
_PNG = b"\x89PNG\r\n\x1a\n"


class EventFile:
    """One event file of ours, appended to until closed; never reopened.

    A record is whole or absent: after a failed write the file is cut back to its
    last whole record and takes no more, because both loaders stop at a torn one.
    """

    def __init__(self, directory: Path, name: str | None = None) -> None:
        """Create a file that sorts after all others in its directory.

        Args:
            directory: Where; must exist.
            name: What to call it instead; no reader sees one without "tfevents".
        """
        self.path = directory / (name or next_name(directory))
        # Exclusive: a user's writer in the same second must never be overwritten,
        # as tensorboardX's file mode "wb" would.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._descriptor: int | None = os.open(self.path, flags, 0o666)
        self._size = 0
        self._append(
            event_pb2.Event(wall_time=time.time(), file_version="brain.Event:2")
        )

    @property
    def usable(self) -> bool:
        """Whether it takes more."""
        return self._descriptor is not None

    def write(self, *, step: int, wall_time: float, values: Iterable[Value]) -> None:
        """Append one event; it can be read on return.

        Args:
            step: Training step, 0 to 2**63 - 1.
            wall_time: In seconds since the epoch, UTC.
            values: What is shown at that step, each under its own tag.
        """
        summary = summary_pb2.Summary(value=values)
        self._append(event_pb2.Event(step=step, wall_time=wall_time, summary=summary))

    def sync(self) -> None:
        """Make what was written survive a loss of power."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Take no more."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def _append(self, event: Event) -> None:
        if self._descriptor is None:
            raise ValueError(f"{self.path} is closed.")
        data = event.SerializeToString()
        length = struct.pack("<Q", len(data))
        record = memoryview(
            b"".join(
                (
                    length,
                    _CRC.pack(masked_crc32c(length)),
                    data,
                    _CRC.pack(masked_crc32c(data)),
                )
            )
        )
        try:
            written = 0
            while written < len(record):
                written += os.write(self._descriptor, record[written:])
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            self.close()
            raise
        self._size += len(record)


def image_value(tag: str, png: bytes) -> Value:
    """Show pixels that are a PNG file already.

    Raises:
        BadInput: When the bytes are no PNG file.
    """
    if not png.startswith(_PNG) or len(png) < len(_PNG) + 16:
        raise BadInput(f"The figure of {tag!r} is no PNG file: {png[:16]!r}…")
    width, height = struct.unpack_from(">II", png, len(_PNG) + 8)
    image = summary_pb2.Summary.Image(
        height=height, width=width, colorspace=4, encoded_image_string=png
    )
    return summary_pb2.Summary.Value(tag=tag, image=image)


def scalar_value(tag: str, number: float) -> Value:
    """Show one number; beyond float32 it is infinite, as TensorBoard draws it."""
    return summary_pb2.Summary.Value(tag=tag, simple_value=number)


def text_value(tag: str, markdown: str) -> Value:
    """Show a text; TensorBoard renders it as Markdown."""
    plugin = summary_pb2.SummaryMetadata.PluginData(plugin_name="text")
    tensor = tensor_pb2.TensorProto(
        dtype="DT_STRING",
        string_val=[markdown.encode()],
        tensor_shape=shape_pb2.TensorShapeProto(
            dim=[shape_pb2.TensorShapeProto.Dim(size=1)]
        ),
    )
    metadata = summary_pb2.SummaryMetadata(plugin_data=plugin)
    return summary_pb2.Summary.Value(tag=tag, metadata=metadata, tensor=tensor)


def event_files(directory: Path) -> list[Path]:
    """Return the event files of one directory in the order in which they are read."""
    return sorted(path for path in directory.glob(f"{_PREFIX}*") if path.is_file())


def read_events(path: Path) -> Iterator[Event]:
    """Read the whole records of an event file, up to the first torn one.

    The checksum of the data is left to TensorBoard: in pure Python it takes
    longer than everything else.
    """
    with path.open("rb") as file:
        while len(header := file.read(_HEADER.size)) == _HEADER.size:
            length, crc = _HEADER.unpack(header)
            if crc != masked_crc32c(header[:8]):
                return
            record = file.read(length + _CRC.size)
            if len(record) < length + _CRC.size:
                return
            try:
                yield event_pb2.Event.FromString(record[:length])
            except DecodeError:
                return


def last_steps(directory: Path) -> dict[str, int]:
    """Return the highest step of each tag in the event files of one directory."""
    last: dict[str, int] = {}
    for path in event_files(directory):
        for event in read_events(path):
            for value in event.summary.value:
                last[value.tag] = max(event.step, last.get(value.tag, -1))
    return last


def next_name(directory: Path) -> str:
    """Name a file so that it is read last, though clocks of hosts may differ.

    Loaders read the files of a directory in the order of their names, which begin
    with the time in seconds.
    """
    seconds = int(time.time())
    for path in event_files(directory):
        digits = path.name.removeprefix(_PREFIX).partition(".")[0]
        seconds = max(seconds, int(digits) + 1) if digits.isdigit() else seconds
    host = "".join(c if c.isalnum() or c in "-." else "-" for c in socket.gethostname())
    unique = f"{os.getpid()}.{time.time_ns()}"
    return f"{_PREFIX}{seconds:010d}.{host}.{unique}.theseus"
