"""Show text from data literally, in characters that the fonts have."""

import functools
from collections.abc import Iterable

from theseus_track.analysis.figures.theme import Theme

__all__ = ["installed", "literal"]

_LONGEST = 40
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def literal(text: object, theme: Theme) -> str:
    r"""Return text that can be drawn and read, whatever it holds.

    Args:
        text: A token, a category or the like.
        theme: Whose fonts must have the characters.

    Returns:
        The text, in which control characters, lone surrogates and characters
        without a glyph are escaped as in Python ("\n", "\u65e5"), shortened in the
        middle to 40 characters.
    """
    covered = _covered(installed(theme.family))
    shown = "".join(_readable(char, covered) for char in str(text))
    if len(shown) <= _LONGEST:
        return shown
    half = (_LONGEST - 1) // 2
    return f"{shown[:half]}…{shown[-half:]}"


@functools.cache
def installed(family: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fonts of a family that are installed here as TrueType, in order."""
    return tuple(name for name in family if _font_file(name).endswith(".ttf"))


def _readable(char: str, covered: frozenset[int]) -> str:
    code = ord(char)
    if char in _NAMED:
        return _NAMED[char]
    if char == " " or (char.isprintable() and code in covered):
        return char
    return (
        char.encode("ascii", "backslashreplace").decode()
        if code > 126
        else f"\\x{code:02x}"
    )


@functools.cache
def _covered(family: Iterable[str]) -> frozenset[int]:
    from matplotlib.font_manager import get_font

    return frozenset().union(*(get_font(_font_file(n)).get_charmap() for n in family))


@functools.cache
def _font_file(name: str) -> str:
    from matplotlib.font_manager import FontProperties, findfont

    try:
        return str(findfont(FontProperties(family=[name]), fallback_to_default=False))
    except ValueError:
        return ""
