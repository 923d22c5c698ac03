"""Hashes that say whether the code of an analysis changed: `measure` and `draw`.

The hash is taken of the syntax tree, so that comments and formatting do not
matter, and of the byte code where no source can be found (a REPL, a frozen
application).
"""

import ast
import dataclasses
import hashlib
import inspect
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from theseus_track.analysis.edits_text import edits_text
from theseus_track.errors import BadInput
from theseus_track.records import dumps

if TYPE_CHECKING:
    from theseus_track.analysis.base import AnalysisBase

__all__ = ["draw_hash", "measure_hash", "text_hash"]

_MEASURING = ("select", "analyze", "combine", "merge")


def measure_hash(analysis: "AnalysisBase") -> str:
    """Hash what computes the value: TARGET, METHODS, CONFIG and the methods.

    Args:
        analysis: An instance, whose `args` count.

    Returns:
        16 hex digits.
    """
    return text_hash(
        _target_name(getattr(analysis, "TARGET", None)),
        repr(tuple(analysis.METHODS)),
        _config_text(analysis),
        *_sources(type(analysis), _MEASURING),
        *(["together"] if analysis.TOGETHER else []),
        *([edits_text(analysis.EDITS, _source)] if analysis.EDITS else []),
    )


def draw_hash(analysis: "AnalysisBase") -> str:
    """Hash what draws the value: `plot` and a THEME of its own; 16 hex digits."""
    theme = [] if analysis.THEME == "light" else [analysis.THEME]
    return text_hash(*_sources(type(analysis), ("plot",)), *theme)


def text_hash(*parts: str) -> str:
    """Hash texts, kept apart from one another; 16 hex digits of a SHA-256."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()[:16]


def _target_name(target: object) -> str:
    if isinstance(target, type):
        return f"{target.__module__}.{target.__qualname__}"
    if isinstance(target, tuple):
        return ",".join(_target_name(item) for item in target)
    return _source(target) if callable(target) else repr(target)


def _config_text(analysis: "AnalysisBase") -> str:
    # A Trainer base's whole configuration (steps, seed) does not change what is
    # measured; the fields that the analysis itself declares do.
    config = vars(type(analysis)).get("CONFIG")
    names = [f.name for f in dataclasses.fields(config)] if config is not None else []
    values = {name: getattr(analysis.args, name) for name in names}
    try:
        return dumps(values)
    except BadInput:
        return repr(values)


def _sources(cls: type, names: Iterable[str]) -> list[str]:
    found = ((name, getattr(cls, name, None)) for name in names)
    return [f"{name}={_source(method)}" for name, method in found if method]


def _source(function: object) -> str:
    try:
        text = textwrap.dedent(inspect.getsource(function))  # type: ignore[arg-type]
        return ast.dump(ast.parse(text))
    except (OSError, TypeError, SyntaxError):
        code = getattr(function, "__code__", None)
        if code is None:
            # An object with __call__ (a selection helper): what it holds decides.
            return f"{type(function).__qualname__}{vars(function) or ''}"
        return f"{code.co_code.hex()}{code.co_names}{code.co_consts!r}"
