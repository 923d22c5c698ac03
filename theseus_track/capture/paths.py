"""The grammar of paths: `blocks_0/attn`, `blocks[3]/attn`, `a/b:encode#1`, ""."""

import fnmatch
import re
from dataclasses import dataclass, replace
from urllib.parse import unquote

from theseus_track.errors import BadInput

__all__ = ["CALL", "Layers", "Path"]

CALL = "__call__"
"""The method that a path means when it names none."""

Layers = int | range | None
"""Which layers of a scanned stack: one, those of a slice, or (None) all of them."""

_RESERVED = re.compile(r"[%/#:\[\]]")
_STEP = r"[^/:#\[\]]+(?:\[[0-9]+(?::[0-9]+)?\])?"
_TEXT = re.compile(
    rf"(?P<names>(?:{_STEP}(?:/{_STEP})*)?)"
    r"(?::(?P<method>[^/:#\[\]]+))?(?:#(?P<call>[0-9]+))?"
)


@dataclass(frozen=True, slots=True)
class Path:
    """Where in a model a call happened, which method it was and the how-manieth.

    Names are those of the parameter tree. Characters that the grammar uses
    (`% / # : [ ]`) are written as `%2F` and the like, so that every path has
    exactly one text. Brackets hold the layers of a scanned stack: `blocks[3]/attn` is
    one layer's call, `blocks[2:5]/attn` three, `blocks/attn` those of the whole stack.

    Attributes:
        names: Names of the modules from the root down; empty for the root.
        method: The method called.
        call: Which call of this method at this place, in program order, >= 0.
        layers: For each name, the layers meant by it; empty if no name has brackets.
    """

    names: tuple[str, ...] = ()
    method: str = CALL
    call: int = 0
    layers: tuple[Layers, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what has no text: an empty name or a negative call."""
        if not all(self.names) or not self.method or self.call < 0:
            raise BadInput(
                f"Names {self.names!r}, method {self.method!r} and call {self.call!r} "
                "are no path: names and method are not empty, call is at least 0."
            )
        fitting = len(self.layers) == len(self.names) and any(
            one is not None for one in self.layers
        )
        if self.layers and not (fitting and all(map(_is_layers, self.layers))):
            raise BadInput(
                f"{self.layers!r} are no layers of {self.names!r}: give an index >= 0, "
                "range(start, stop) or None for each name, or nothing."
            )

    @classmethod
    def parse(cls, text: str) -> "Path":
        """Read a path, such as `blocks_0/attn`, `a/b:encode#1` or the empty root.

        Raises:
            BadInput: When the text is not in the grammar.

        Example:
            >>> Path.parse("blocks_0/attn:encode#1")
            Path(names=('blocks_0', 'attn'), method='encode', call=1, layers=())
        """
        match = _TEXT.fullmatch(text)
        steps = match["names"].split("/") if match and match["names"] else []
        layers = tuple(map(_read_layers, steps))
        if match is None or range(0) in layers:
            raise BadInput(
                f"{text!r} is no path. Write the names from the root with '/', then "
                "':method' if it is not __call__, then '#k' for the call after the "
                "first: 'blocks_0/attn', 'a/b:encode#1', '' for the root. Layers of a "
                "scanned stack: 'blocks[3]/attn', 'blocks[2:5]/attn'."
            )
        return cls(
            tuple(unquote(step.partition("[")[0]) for step in steps),
            unquote(match["method"] or CALL),
            int(match["call"] or 0),
            layers if any(one is not None for one in layers) else (),
        )

    def __str__(self) -> str:
        """Return the text that `parse` reads back."""
        method = "" if self.method == CALL else f":{_escape(self.method)}"
        call = f"#{self.call}" if self.call else ""
        layers = self.layers or (None,) * len(self.names)
        steps = zip(map(_escape, self.names), map(_brackets, layers), strict=True)
        return "/".join(map("".join, steps)) + method + call

    @property
    def base(self) -> "Path":
        """The same place and method, without the number of the call."""
        return replace(self, call=0)

    @property
    def stacked(self) -> "Path":
        """The same call in all layers of the scanned stacks around it."""
        return replace(self, layers=())

    @property
    def is_pattern(self) -> bool:
        """Whether a name holds `*` or `?`, which stand for parts of names."""
        return any("*" in name or "?" in name for name in self.names)

    def fits(self, other: "Path") -> bool:
        """Tell whether another path is one that this pattern stands for.

        Without a number it stands for all calls at a place.
        """
        return (
            len(self.names) == len(other.names)
            and self.method == other.method
            and self.call in (0, other.call)
            and all(map(_fits, self.names, other.names))
        )

    def numbered(self, call: int) -> "Path":
        """Return the path of another call at the same place, counted from 0."""
        return replace(self, call=call)


def _fits(pattern: str, name: str) -> bool:
    # Only `*` and `?`: brackets hold the layers of a scanned stack.
    return bool(re.fullmatch(fnmatch.translate(pattern.replace("[", "[[]")), name))


def _escape(name: str) -> str:
    return _RESERVED.sub(lambda found: f"%{ord(found[0]):02X}", name)


def _is_layers(layers: Layers) -> bool:
    if isinstance(layers, range):
        return layers.start >= 0 and len(layers) > 0 and layers.step == 1
    return layers is None or layers >= 0


def _read_layers(step: str) -> Layers:
    """Read the brackets after a name; an empty slice gives an empty range."""
    text = step.partition("[")[2].rstrip("]")
    if not text:
        return None
    start, colon, stop = text.partition(":")
    if not colon:
        return int(start)
    found = range(int(start), int(stop))
    return found if found else range(0)


def _brackets(layers: Layers) -> str:
    if layers is None:
        return ""
    if isinstance(layers, range):
        return f"[{layers.start}:{layers.stop}]"
    return f"[{layers}]"
