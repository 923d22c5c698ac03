"""A sink that keeps what it is given in memory, for tests and for notebooks."""

from theseus_track.errors import DeliveryError
from theseus_track.records import Item, RunInfo
from theseus_track.sinks.contract import Capabilities, Receipt
from theseus_track.sinks.seen import Seen

__all__ = ["MemorySink"]


class MemorySink:
    """Keeps every item once, in the order of delivery.

    Example:
        >>> from theseus_track.records import MetricsItem, RecordRef, RunInfo
        >>> sink = MemorySink()
        >>> sink.open(RunInfo(project="demo", name="a", id="a1", created=0.0))
        >>> ref = RecordRef(writer="w", seq=1)
        >>> row = MetricsItem(ref=ref, step=3, wall_time=1.5, metrics={"loss": 2.0})
        >>> sink.write(row)
        Receipt(status='written', reason='')
        >>> [item.step for item in sink.items]
        [3]
    """

    name = "memory"
    can = Capabilities(
        past_steps=True, one_writer=False, tables=True, pdf=True, read_back=True
    )

    def __init__(self) -> None:
        """Start closed and empty."""
        self.info: RunInfo | None = None
        self.items: list[Item] = []
        self.closed = False
        self._seen = Seen()

    def open(self, info: RunInfo) -> None:
        """Remember which run this is."""
        self.info = info
        self.closed = False

    def write(self, item: Item) -> Receipt:
        """Keep an item, unless it is here already.

        Raises:
            DeliveryError: When the sink is not open.
        """
        if self.info is None or self.closed:
            raise DeliveryError("The memory sink is not open; call open(info) first.")
        if item in self._seen:
            return Receipt("written", "was here already")
        self.items.append(item)
        self._seen.add(item)
        return Receipt("written")

    def flush(self, _timeout: float) -> None:
        """Do nothing: an item can be read as soon as it is written."""

    def close(self, _timeout: float) -> None:
        """Take no more; what was kept stays readable."""
        self.closed = True
