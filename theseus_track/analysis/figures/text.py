"""Show text literally, in characters that the fonts have, and measure it."""

import functools
import re

from theseus_track.analysis.figures.theme import Theme

__all__ = [
    "drawable",
    "installed",
    "literal",
    "seen",
    "shortened",
    "text_extent",
    "words_of",
]

_LONGEST = 40
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_POINTS_PER_INCH = 72.0
_JOINER = "\x00"
"""Stands for a blank in maths; text that is drawn never holds it."""
# As in Pandoc: no blank inside the dollars, no digit after them, so that prices
# are not maths.
_MATHS = re.compile(r"(?<!\\)\$(?=\S)[^$]*?(?<=[^\s\\])\$(?!\d)")


def literal(text: object, theme: Theme, *, longest: int | None = _LONGEST) -> str:
    r"""Return text that can be drawn and read, whatever it holds.

    Args:
        text: A token, a category or the like.
        theme: Whose fonts must have the characters.
        longest: Characters to keep, or None for all.

    Returns:
        The text, in which control characters, lone surrogates and characters
        without a glyph are escaped as in Python ("\n", "\u65e5"), shortened in the
        middle.
    """
    covered = _covered(installed(theme.family))
    shown = "".join(_readable(char, covered) for char in str(text))
    return shown if longest is None else shortened(shown, longest)


def shortened(text: str, longest: int) -> str:
    """Cut the middle out of a text that is longer than `longest` characters."""
    if len(text) <= longest:
        return text
    half = max(1, (longest - 1) // 2)
    return f"{text[:half]}…{text[-half:]}"


def drawable(text: object, theme: Theme) -> tuple[str, bool]:
    r"""Return an author's text as matplotlib takes it, and whether it holds maths.

    Args:
        text: With line breaks; `$...$` in it is maths where it can be parsed.
        theme: Whose fonts must have the other characters.

    Returns:
        The text, and what to give `Text.set_parse_math`. With maths, the dollars
        that are none are escaped.
    """
    whole = str(text)
    lines = "\n".join(literal(line, theme, longest=None) for line in whole.split("\n"))
    found = [match.group() for match in _MATHS.finditer(whole)]
    if not found or not all(map(_parses, found)):
        return lines, False
    pieces: list[str] = []
    for index, line in enumerate(whole.split("\n")):
        pieces.append("\n" if index else "")
        end = 0
        for match in _MATHS.finditer(line):
            pieces += [_plain(line[end : match.start()], theme), match.group()]
            end = match.end()
        pieces.append(_plain(line[end:], theme))
    return "".join(pieces), True


def seen(text: str) -> str:
    """Return roughly what a reader sees of a text: its maths without the marks."""
    return _MATHS.sub(lambda found: re.sub(r"[$\\{}^_]", "", found.group()), text)


def words_of(line: str) -> list[str]:
    """Split a line at blanks that are outside of maths."""
    kept = _MATHS.sub(lambda found: found.group().replace(" ", _JOINER), line)
    return [word.replace(_JOINER, " ") for word in kept.split(" ") if word]


def text_extent(
    text: str, theme: Theme, size: float, *, family: tuple[str, ...] | None = None
) -> float:
    """Return how wide a line of text is, in inches.

    Args:
        text: One line.
        theme: The look.
        size: In points.
        family: Fonts to measure; those of the theme's labels by default.
    """
    fonts = installed(theme.family if family is None else family)
    return sum(_advance(char, fonts) for char in text) * size / _POINTS_PER_INCH


@functools.cache
def installed(family: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fonts of a family that are installed here as TrueType, in order."""
    return tuple(name for name in family if _font_file(name).endswith(".ttf"))


def _plain(text: str, theme: Theme) -> str:
    return literal(text.replace(r"\$", "$"), theme, longest=None).replace("$", r"\$")


@functools.lru_cache(maxsize=512)
def _parses(maths: str) -> bool:
    from matplotlib.mathtext import MathTextParser

    try:
        MathTextParser("path").parse(maths)
    except (ValueError, TypeError):
        return False
    return True


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
def _covered(family: tuple[str, ...]) -> frozenset[int]:
    from matplotlib.font_manager import get_font

    return frozenset().union(*(get_font(_font_file(n)).get_charmap() for n in family))


@functools.cache
def _advance(char: str, fonts: tuple[str, ...]) -> float:
    """Return how far a character moves the pen, in units of the font size."""
    from matplotlib.font_manager import get_font
    from matplotlib.ft2font import LoadFlags

    for name in fonts:
        font = get_font(_font_file(name))
        if font.get_char_index(ord(char)):
            glyph = font.load_char(ord(char), flags=LoadFlags.NO_SCALE)
            return float(glyph.horiAdvance / font.units_per_EM)
    return 0.6


@functools.cache
def _font_file(name: str) -> str:
    from matplotlib.font_manager import FontProperties, findfont

    try:
        return str(findfont(FontProperties(family=[name]), fallback_to_default=False))
    except ValueError:
        return ""
