"""The messages between a training process and its render worker.

A message is an 8-byte big-endian length and a pickle. Both ends are the same
installation, started by the same user, over private pipes.
"""

import collections
import copyreg
import dataclasses
import io
import pickle
import struct
from typing import IO, TYPE_CHECKING, Any

from theseus_track.records import View

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Hello", "Job", "Reply", "pickle_figure", "receive", "send"]

_LENGTH = struct.Struct(">Q")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The first message: what the worker must know about its parent.

    Attributes:
        path: The parent's `sys.path`, so that the same modules are found.
        pid: The parent's process id; the worker ends when it loses this parent.
    """

    path: tuple[str, ...]
    pid: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One figure to draw.

    Attributes:
        figure: The pickled figure.
        settings: The pickled rcParams to draw it under, a dict.
    """

    figure: bytes
    settings: bytes


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What became of one job.

    Attributes:
        files: Suffix -> bytes; empty when there was an error.
        warnings: The distinct warnings that drawing gave, as text.
        error: One line, or "" when the figure was drawn.
        traceback: The worker's traceback of that error.
        unpickled: Whether the figure could be rebuilt in the worker.
    """

    files: dict[str, bytes] = dataclasses.field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    error: str = ""
    traceback: str = ""
    unpickled: bool = True


def pickle_figure(figure: "Figure") -> bytes:
    """Pickle a figure without its View, which the worker has no use for.

    Raises:
        Exception: Whatever an object on the figure raises when it is pickled.
    """
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL)
    table: Any = copyreg.dispatch_table
    pickler.dispatch_table = collections.ChainMap({View: _reduce_to_none}, table)
    pickler.dump(figure)
    return buffer.getvalue()


def send(stream: IO[bytes], message: Hello | Job | Reply) -> None:
    """Write one message and flush.

    Raises:
        OSError: When the other end is gone.
    """
    payload = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(payload)))
    stream.write(payload)
    stream.flush()


def receive(stream: IO[bytes]) -> Hello | Job | Reply:
    """Read one message.

    Raises:
        EOFError: When the other end is gone, perhaps in the middle of a message.
    """
    (length,) = _LENGTH.unpack(_read(stream, _LENGTH.size))
    message: Hello | Job | Reply = pickle.loads(_read(stream, length))
    return message


def _read(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data


def _reduce_to_none(_: View) -> tuple[type[None], tuple[()]]:
    return type(None), ()
