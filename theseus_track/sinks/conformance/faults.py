"""Sinks that misbehave around a sink that works."""

import threading

from theseus_track.records import Item, RunInfo
from theseus_track.sinks.contract import Receipt, Sink

__all__ = ["BlocksOnClose", "RaisesAfterWriting", "RefusesThird", "Wrapped"]


class Wrapped:
    """Passes everything on to another sink; the others here change one call."""

    def __init__(self, sink: Sink) -> None:
        """Take the place of a sink."""
        self._sink = sink
        self.name = sink.name
        self.can = sink.can

    def open(self, info: RunInfo) -> None:
        """Open the other sink."""
        self._sink.open(info)

    def write(self, item: Item) -> Receipt:
        """Write to the other sink."""
        return self._sink.write(item)

    def flush(self, timeout: float) -> None:
        """Flush the other sink."""
        self._sink.flush(timeout)

    def close(self, timeout: float) -> None:
        """Close the other sink."""
        self._sink.close(timeout)


class RefusesThird(Wrapped):
    """Refuses every third item for good."""

    _count = 0

    def write(self, item: Item) -> Receipt:
        """Write two, refuse one."""
        self._count += 1
        if self._count % 3 == 0:
            return Receipt("failed", "every third is refused")
        return super().write(item)


class RaisesAfterWriting(Wrapped):
    """Does its work and raises, as a tracker does whose answer is lost."""

    _raised = False

    def write(self, item: Item) -> Receipt:
        """Write, and raise at every first try."""
        receipt = super().write(item)
        self._raised = not self._raised
        if self._raised:
            raise ConnectionError("the answer was lost")
        return receipt


class BlocksOnClose(Wrapped):
    """Does not return from `close` before `release` is set."""

    def __init__(self, sink: Sink) -> None:
        """Take the place of a sink."""
        super().__init__(sink)
        self.release = threading.Event()

    def close(self, timeout: float) -> None:
        """Wait, ten minutes at most, and close."""
        self.release.wait(600.0)
        super().close(timeout)
