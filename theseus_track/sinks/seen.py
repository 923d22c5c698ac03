"""Which items a sink has already taken, in little memory."""

from theseus_track.records import Item, MetricsItem, RecordRef

__all__ = ["Seen"]


class Seen:
    """A set of (record, part); a million rows of metrics take 125 KB.

    Rows of metrics come by the million and have one part, so a bit each is kept
    for them, at the number of their line; figures and JSON values are few.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._rows: dict[str, bytearray] = {}
        self._parts: set[tuple[RecordRef, str, str]] = set()

    def __contains__(self, item: Item) -> bool:
        if not isinstance(item, MetricsItem):
            return (item.ref, type(item).__name__, item.part) in self._parts
        byte, bit = divmod(item.ref.seq, 8)
        bits = self._rows.get(item.ref.writer, b"")
        return byte < len(bits) and bool(bits[byte] >> bit & 1)

    def add(self, item: Item) -> None:
        """Note that an item was taken."""
        if not isinstance(item, MetricsItem):
            self._parts.add((item.ref, type(item).__name__, item.part))
            return
        byte, bit = divmod(item.ref.seq, 8)
        bits = self._rows.setdefault(item.ref.writer, bytearray())
        bits.extend(bytes(max(0, byte + 1 - len(bits))))
        bits[byte] |= 1 << bit
