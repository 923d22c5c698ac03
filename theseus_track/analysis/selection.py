"""Ready-made answers to `select`: first, last, every n-th, the i-th, or a pattern."""

import re
from dataclasses import dataclass
from typing import Protocol

from theseus_track.errors import BadInput, describe_unknown

__all__ = ["Selector", "every", "first", "glob", "last", "nth"]


class Selector(Protocol):
    """What can be assigned to `select` in the body of an analysis.

    An object, not a function: as a class attribute it is called with the paths
    alone. It is compared, printed and hashed into the ledger by what it holds.
    """

    def __call__(self, paths: list[str]) -> str | list[str]:
        """Choose among the paths that discovery found, in program order."""


@dataclass(frozen=True)
class _Nth:
    index: int

    def __call__(self, paths: list[str]) -> str:
        try:
            return paths[self.index]
        except IndexError:
            raise BadInput(
                f"{self!r} asks for more calls than there are: {len(paths)} were "
                f"found, so the index must be {-len(paths)} to {len(paths) - 1}."
            ) from None

    def __repr__(self) -> str:
        return {0: "first", -1: "last"}.get(self.index, f"nth({self.index})")


@dataclass(frozen=True)
class _Every:
    step: int

    def __post_init__(self) -> None:
        if self.step < 1:
            raise BadInput(f"every(n) needs n >= 1, not {self.step!r}.")

    def __call__(self, paths: list[str]) -> list[str]:
        return paths[:: self.step]

    def __repr__(self) -> str:
        return f"every({self.step})"


@dataclass(frozen=True)
class _Glob:
    pattern: str

    def __call__(self, paths: list[str]) -> list[str]:
        wanted = self.pattern.split("/")
        fitting = (_fit(wanted, path.split("/")) for path in paths)
        found = ["/".join(names) for names in fitting if names is not None]
        if not found:
            known = describe_unknown("path", self.pattern, paths)
            raise BadInput(f"{self!r} fits no call. {known}")
        return found

    def __repr__(self) -> str:
        return f"glob({self.pattern!r})"


first: Selector = _Nth(0)
"""Select the first call in program order; one path."""

last: Selector = _Nth(-1)
"""Select the last call in program order; one path."""


def nth(index: int) -> Selector:
    """Select the call at an index in program order; negative ones count from the end.

    Example:
        >>> from theseus_track.analysis import nth
        >>> nth(-2)(["blocks_0", "blocks_1", "blocks_2"])
        'blocks_1'
    """
    return _Nth(index)


def every(step: int) -> Selector:
    """Select each n-th call in program order, from the first on; 1 selects all.

    Raises:
        BadInput: When the step is below 1.

    Example:
        >>> from theseus_track.analysis import every
        >>> every(2)(["blocks_0", "blocks_1", "blocks_2"])
        ['blocks_0', 'blocks_2']
    """
    return _Every(step)


def glob(pattern: str) -> Selector:
    """Select the calls whose path fits a pattern; a fault if there is none.

    Args:
        pattern: A path in which `*` stands for any text within one name, `?` for one
            character, and a name `**` for any number of names. An index or slice in
            brackets is no pattern: it picks layers of a scanned stack.

    Example:
        >>> from theseus_track.analysis import glob
        >>> glob("blocks_*/attn")(["blocks_0/attn", "blocks_0/mlp", "blocks_1/attn"])
        ['blocks_0/attn', 'blocks_1/attn']
        >>> glob("blocks[3]/*")(["blocks/attn", "blocks/mlp"])
        ['blocks[3]/attn', 'blocks[3]/mlp']
    """
    return _Glob(pattern)


def _fit(wanted: list[str], names: list[str]) -> list[str] | None:
    """Match names one by one; return them with the pattern's layers, or None."""
    if not wanted:
        return None if names else []
    head, rest = wanted[0], wanted[1:]
    if head == "**":
        for count in range(len(names) + 1):
            tail = _fit(rest, names[count:])
            if tail is not None:
                return [*names[:count], *tail]
        return None
    tail = _fit(rest, names[1:]) if names else None
    own = _fit_name(head, names[0]) if tail is not None else None
    return None if own is None or tail is None else [own, *tail]


_LAYERS = re.compile(r"([^\[]*)((?:\[[0-9:]*\])?)(.*)", re.DOTALL)


def _fit_name(wanted: str, name: str) -> str | None:
    groups: tuple[str, str, str] = _LAYERS.findall(wanted)[0]
    start, layers, end = groups
    parts = (re.escape(part) for part in re.split(r"([*?])", start + end))
    expression = "".join({r"\*": ".*", r"\?": "."}.get(part, part) for part in parts)
    if not re.fullmatch(expression, name, re.DOTALL):
        return None
    # The layers follow the name, before the method and the number of the call.
    stem = re.split("[:#]", name)[0]
    return stem + layers + name[len(stem) :]
