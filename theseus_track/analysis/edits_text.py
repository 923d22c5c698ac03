"""What edits do, as a text that is the same in every process."""

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import jax
import numpy as np

from theseus_track.capture import Isolated

__all__ = ["edits_text"]

_PLAIN = (type(None), bool, int, float, str, slice, range)


def edits_text(edits: Any, source: Callable[[object], str], depth: int = 8) -> str:
    """Say what edits do.

    Args:
        edits: Of an analysis, or a part of them.
        source: Says what a function does.
        depth: How far what a function holds is looked into, >= 0.
    """

    def inner(part: Any) -> str:
        return edits_text(part, source, depth - 1)

    if isinstance(edits, _PLAIN) or depth < 0:
        return repr(edits) if isinstance(edits, _PLAIN) else "..."
    if isinstance(edits, Isolated):
        return edits.path + inner(jax.tree.leaves(edits))
    if isinstance(edits, np.ndarray | jax.Array):
        data = hashlib.sha256(np.asarray(edits).tobytes())
        return f"{edits.dtype}{edits.shape}{data.hexdigest()}"
    if isinstance(edits, Mapping):
        return "".join(f"{key!r}:{inner(one)}," for key, one in edits.items())
    if isinstance(edits, list | tuple):
        return f"[{','.join(map(inner, edits))}]"
    if dataclasses.is_dataclass(edits) and not isinstance(edits, type):
        fields = [getattr(edits, field.name) for field in dataclasses.fields(edits)]
        return type(edits).__name__ + inner(fields)
    if isinstance(edits, FunctionType):
        # Rules are often made by functions: what they hold makes the difference.
        cells = [cell.cell_contents for cell in edits.__closure__ or ()]
        return source(edits) + inner(cells)
    # Not its repr: that may hold an address.
    return type(edits).__qualname__
