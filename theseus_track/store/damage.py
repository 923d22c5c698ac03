"""One thing found wrong in a ledger: in which file, where in it, and what."""

import dataclasses
from pathlib import Path

__all__ = ["Damage"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One thing found wrong in a ledger.

    Attributes:
        file: The damaged file.
        where: The place in it, such as "line 12, byte 3456" or "bytes 64-128".
        what: What is wrong, in one line.
    """

    file: Path
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}, {self.where}: {self.what}"
