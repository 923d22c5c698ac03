"""A file that is created by one writer and only ever grows."""

from pathlib import Path

__all__ = ["AppendFile"]


class AppendFile:
    """A file that is created by one writer and only ever grows.

    It is created exclusively and never opened again for writing, so that no two
    writers share a file and no reader needs a lock. Not thread-safe.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Unbuffered: one `write` is one system call, and what it took is known.
        self._file = path.open("xb", buffering=0)

    @property
    def size(self) -> int:
        """Bytes in the file, by the system's own count.

        An exception may end a write, or strike just after it.
        """
        return self._file.tell()

    def write(self, data: bytes) -> None:
        """Append all of the data.

        Raises:
            OSError: When not all of it could be written; `size` tells how much.
        """
        rest = memoryview(data)
        while rest:
            written = self._file.write(rest)
            if not written:
                raise OSError(f"{self.path}: the file took nothing more.")
            rest = rest[written:]

    def close(self) -> None:
        """Close the file; doing it twice is harmless."""
        self._file.close()
