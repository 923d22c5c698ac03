"""Grids of edits: every rule with every mask, as one batch of edited runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from theseus_track.capture.discover import Discoverer, Query
from theseus_track.capture.paths import Path
from theseus_track.capture.program import Arguments
from theseus_track.capture.rules import Change
from theseus_track.errors import BadInput, UnreachedCall, describe_unknown

__all__ = ["Grid"]


@dataclass(frozen=True, eq=False)
class Grid:
    """Many edits, each of one call: a rule there with one of the masks.

    Attributes:
        rules: By path, a ready rule of `rules`.
        masks: What is edited, [mask, element] along the axis, as bools or numbers
            from 0 to 1; None for each element alone.
        axis: Of the output (or of the input that a rule is on): the position, or the
            unit.
        parts: Count in so many equal parts of the axis, such as its heads.

    Raises:
        BadInput: When there are no rules, or one that takes no mask.
    """

    rules: Mapping[str, Change]
    masks: Any = None
    axis: int = -1
    parts: int | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no grid."""
        if not self.rules:
            raise BadInput("A grid of edits needs at least one path.")
        for path, rule in self.rules.items():
            if not isinstance(rule, Change):
                raise BadInput(
                    f"The rule for {path!r} takes no mask; in a grid only the ready "
                    f"ones of `rules` can be used, not {rule!r}."
                )

    def of(self, rules: Mapping[str, Change]) -> "Grid":
        """Return the same grid of other rules."""
        return replace(self, rules=rules)

    def rows(self, fn: Callable[..., Any], arguments: Arguments) -> Any:
        """Return the masks, [mask, element], where none are given from the shapes."""
        masks = self.masks
        if masks is None:
            masks = jnp.eye(self.parts or self._size(fn, arguments), dtype=bool)
        masks = jnp.asarray(masks)
        if masks.ndim != 2:
            raise BadInput(
                f"masks must be [mask, element], not of shape {masks.shape}."
            )
        return masks

    def points(self, rows: Any) -> tuple[Any, Any]:
        """Return all points of the grid: the number of the path, and the mask."""
        count = len(self.rules)
        return jnp.repeat(jnp.arange(count), len(rows)), jnp.tile(rows, (count, 1))

    def at(self, point: tuple[Any, Any]) -> dict[str, Change]:
        """Return the edits of one point; all but one change nothing."""
        path, mask = point
        return {
            place: rule.at(
                jnp.where(path == number, mask, jnp.zeros_like(mask)),
                self.axis,
                parts=self.parts,
            )
            for number, (place, rule) in enumerate(self.rules.items())
        }

    def _size(self, fn: Callable[..., Any], arguments: Arguments) -> int:
        """Return how many elements there are along the axis at every path."""
        parsed = {text: Path.parse(text) for text in self.rules}
        methods = tuple({path.method for path in parsed.values()})
        calls = Discoverer({"": Query(None, methods)}).run(fn, arguments).calls[""]
        sizes = set()
        for text, path in parsed.items():
            stacked = str(path.stacked)
            if stacked not in calls:
                raise UnreachedCall(describe_unknown("call", text, calls))
            name = self.rules[text].name
            call = calls[stacked]
            place = call.output if name is None else call.inputs[name]
            sizes.add(jax.tree.leaves(place)[0].shape[self.axis])
        if len(sizes) > 1:
            raise BadInput(
                f"The calls have {sorted(sizes)} elements along axis {self.axis}; give "
                "masks, parts, or calls of one shape."
            )
        size: int = sizes.pop()
        return size
