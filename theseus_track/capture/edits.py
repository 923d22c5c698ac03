"""What a site may ask to be edited: rules by path, or a grid of them."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from theseus_track.capture.grid import Grid
from theseus_track.capture.paths import Path
from theseus_track.capture.rules import CLEAN, Change
from theseus_track.errors import BadInput

__all__ = [
    "Edits",
    "check_edits",
    "identity",
    "of_plain",
    "rules_of",
    "with_rules",
]

Edits = Mapping[str, Callable[[Any, Any, Any], Any]] | Grid
"""Rules by path, as `edit` takes them, `*` and `?` in names allowed; or a grid."""


def check_edits(edits: Any) -> None:
    """Refuse what are no edits.

    Raises:
        BadInput: When they are neither a grid nor rules by path.
    """
    if not isinstance(edits, Mapping | Grid):
        raise BadInput(
            f"Edits are a mapping from paths to rules or a Grid, not {edits!r}."
        )
    for path, rule in rules_of(edits).items():
        Path.parse(path)
        if not callable(rule):
            raise BadInput(
                f"The rule for {path!r} must be a function of (layer, inputs, output) "
                f"or one of `rules`, not {rule!r}."
            )


def rules_of(edits: Edits) -> Mapping[str, Any]:
    """Return the rules by path."""
    return edits.rules if isinstance(edits, Grid) else edits


def with_rules(edits: Edits, rules: Mapping[str, Any]) -> Edits:
    """Return the same edits with other rules."""
    return edits.of(rules) if isinstance(edits, Grid) else rules


def of_plain(rule: Any) -> bool:
    """Tell whether a rule brings what is there in the plain run."""
    return isinstance(rule, Change) and rule.value is CLEAN


def identity(value: Any) -> Hashable:
    """Return what is equal for edits, or parts of them, that do the same."""
    if is_dataclass(value) and not isinstance(value, type):
        own = (identity(getattr(value, field.name)) for field in fields(value))
        return (type(value), *own)
    if isinstance(value, Mapping):
        return tuple((key, identity(one)) for key, one in value.items())
    if isinstance(value, list | tuple):
        return (type(value), *map(identity, value))
    if isinstance(value, np.ndarray):
        return (value.shape, str(value.dtype), value.tobytes())
    if value is None or isinstance(value, bool | int | float | str | slice):
        return (type(value), str(value))
    return id(value)
