"""Which items a sink has already taken, in little memory."""

from theseus_track.records import Item, MetricsItem, RecordRef

__all__ = ["Lines", "Seen"]


class Lines:
    """Lines of writers; a million of them take 125 KB, a bit each."""

    def __init__(self) -> None:
        """Start with none."""
        self._bits: dict[str, bytearray] = {}

    def has(self, writer: str, seq: int) -> bool:
        """Tell whether a line was added."""
        byte, bit = divmod(seq, 8)
        bits = self._bits.get(writer, b"")
        return byte < len(bits) and bool(bits[byte] >> bit & 1)

    def add(self, writer: str, seq: int) -> None:
        """Add a line."""
        byte, bit = divmod(seq, 8)
        bits = self._bits.setdefault(writer, bytearray())
        bits.extend(bytes(max(0, byte + 1 - len(bits))))
        bits[byte] |= 1 << bit


class Seen:
    """A set of (record, part).

    Rows of metrics come by the million and have one part, so only their lines are
    kept; figures and JSON values are few.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._rows = Lines()
        self._parts: set[tuple[RecordRef, str, str]] = set()

    def __contains__(self, item: Item) -> bool:
        if isinstance(item, MetricsItem):
            return self._rows.has(item.ref.writer, item.ref.seq)
        return (item.ref, type(item).__name__, item.part) in self._parts

    def add(self, item: Item) -> None:
        """Note that an item was taken."""
        if isinstance(item, MetricsItem):
            self._rows.add(item.ref.writer, item.ref.seq)
        else:
            self._parts.add((item.ref, type(item).__name__, item.part))
