"""The grammar of paths: `blocks_0/attn`, `a/b#1`, `a/b:encode`, "" for the root."""

import re
from dataclasses import dataclass, replace
from urllib.parse import unquote

from theseus_track.errors import BadInput

__all__ = ["CALL", "Path"]

CALL = "__call__"
"""The method that a path means when it names none."""

_RESERVED = re.compile(r"[%/#:\[\]]")
_TEXT = re.compile(
    r"(?P<names>[^:#\[\]]*)(?::(?P<method>[^/:#\[\]]+))?(?:#(?P<call>[0-9]+))?"
)


@dataclass(frozen=True, slots=True)
class Path:
    """Where in a model a call happened, which method it was and the how-manieth.

    Names are those of the parameter tree. Characters that the grammar uses
    (`% / # : [ ]`) are written as `%2F` and the like, so that every path has
    exactly one text. Brackets are kept free for the layers of a scanned stack.

    Attributes:
        names: Names of the modules from the root down; empty for the root.
        method: The method called.
        call: Which call of this method at this place, in program order, >= 0.
    """

    names: tuple[str, ...] = ()
    method: str = CALL
    call: int = 0

    def __post_init__(self) -> None:
        """Refuse what has no text: an empty name or a negative call."""
        if not all(self.names) or not self.method or self.call < 0:
            raise BadInput(
                f"Names {self.names!r}, method {self.method!r} and call {self.call!r} "
                "are no path: names and method are not empty, call is at least 0."
            )

    @classmethod
    def parse(cls, text: str) -> "Path":
        """Read a path, such as `blocks_0/attn`, `a/b:encode#1` or the empty root.

        Raises:
            BadInput: When the text is not in the grammar.

        Example:
            >>> Path.parse("blocks_0/attn:encode#1")
            Path(names=('blocks_0', 'attn'), method='encode', call=1)
        """
        match = _TEXT.fullmatch(text)
        names = tuple(match["names"].split("/")) if match and match["names"] else ()
        if match is None or not all(names):
            raise BadInput(
                f"{text!r} is no path. Write the names from the root with '/', then "
                "':method' if it is not __call__, then '#k' for the call after the "
                "first: 'blocks_0/attn', 'a/b:encode#1', '' for the root."
            )
        return cls(
            tuple(unquote(name) for name in names),
            unquote(match["method"] or CALL),
            int(match["call"] or 0),
        )

    def __str__(self) -> str:
        """Return the text that `parse` reads back."""
        method = "" if self.method == CALL else f":{_escape(self.method)}"
        call = f"#{self.call}" if self.call else ""
        return "/".join(_escape(name) for name in self.names) + method + call

    @property
    def base(self) -> "Path":
        """The same place and method, without the number of the call."""
        return replace(self, call=0)

    def numbered(self, call: int) -> "Path":
        """Return the path of another call at the same place, counted from 0."""
        return replace(self, call=call)


def _escape(name: str) -> str:
    return _RESERVED.sub(lambda found: f"%{ord(found[0]):02X}", name)
