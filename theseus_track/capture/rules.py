"""Ready rules for `edit`: what a call's output or input becomes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as _with
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from theseus_track.capture.isolated import Isolated
from theseus_track.errors import BadInput, describe_unknown

__all__ = [
    "CLEAN",
    "Change",
    "add",
    "clean",
    "mean",
    "patch",
    "replace",
    "scale",
    "zero",
]

CLEAN = object()
"""Stands for what the plain run holds at the same place, until that is known."""

Compute = Callable[["Change", Any], Any]


@dataclass(frozen=True)
class _Where:
    """Which elements along one axis change.

    Attributes:
        chosen: An index, several, a slice, or a mask; None: it is a whole mask.
        axis: Which axis of the value; None: a mask of the value's own shape.
        parts: Into how many equal parts the axis is split; None: single elements.
    """

    chosen: Any
    axis: int | None
    parts: int | None

    def mask(self, shape: tuple[int, ...]) -> Any:
        """Return a mask that broadcasts to the shape."""
        if self.axis is None:
            return jnp.asarray(self.chosen)
        size = shape[self.axis]
        if size % (self.parts or size):
            raise BadInput(
                f"An axis of {size} elements cannot be split into {self.parts} parts."
            )
        along = _along(self.chosen, self.parts or size)
        along = jnp.repeat(
            along, size // (self.parts or size), total_repeat_length=size
        )
        axis = self.axis % len(shape)
        return along.reshape((size,) + (1,) * (len(shape) - axis - 1))


@dataclass(frozen=True)
class Change:
    """A rule for `edit`; made by this module's functions, or found as `zero`, `mean`.

    It changes every floating array of what the call returns, or of an input.

    Attributes:
        compute: From this rule and a value's arrays to the new ones.
        value: What the rule brings along, for the output or for inputs by name.
        where: Which elements change; nothing: all.
        name: The input that changes; None: the output.
    """

    compute: Compute
    value: Any = None
    where: tuple[_Where, ...] = ()
    name: str | None = None

    def at(
        self, chosen: Any, axis: int | None = -1, *, parts: int | None = None
    ) -> "Change":
        """Change only some elements; several `at` mean those in all of them.

        Args:
            chosen: An index, a list of indices or a slice along the axis; or a mask,
                of bools or of numbers from 0 (as it was) to 1 (changed), which may be
                traced.
            axis: Of the value; None for a mask that broadcasts to the whole value.
            parts: Count in so many equal parts of the axis, such as the heads that
                an attention layer writes side by side.
        """
        return _with(self, where=(*self.where, _Where(chosen, axis, parts)))

    def on(self, name: str) -> "Change":
        """Change the input of that name instead of the output."""
        return _with(self, name=name)

    def __call__(self, _layer: Any, _inputs: Any, output: Any) -> Any:
        """Return what becomes of the output."""
        return self.changed(output)

    def given(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return what becomes of the arguments, by name."""
        assert self.name is not None
        if self.name not in arguments:
            raise BadInput(describe_unknown("input", self.name, arguments))
        return {**arguments, self.name: self.changed(arguments[self.name])}

    def changed(self, value: Any) -> Any:
        """Return what becomes of a value: an array or a pytree of them."""
        new = self.compute(self, value)
        return jax.tree.map(self._mixed, value, new)

    def _mixed(self, old: Any, new: Any) -> Any:
        if not _is_floating(old):
            return old
        new = _like(new, old)
        for one in self.where:
            mask = jnp.broadcast_to(one.mask(old.shape), old.shape)
            if mask.dtype != bool:
                # Exact at 0 and at 1, and differentiable between them.
                share = mask.astype(old.dtype)
                new = share * new + (1 - share) * old
            else:
                new = jnp.where(mask, new, old)
        return new


def _each(one: Callable[[Any, Any], Any]) -> Compute:
    """Apply a function of (array, what the rule brings) to each array of a value."""

    def compute(change: Change, value: Any) -> Any:
        return jax.tree.map(
            lambda x: one(x, change.value) if _is_floating(x) else x, value
        )

    return compute


def _brought(change: Change, value: Any) -> Any:
    """Take what the rule brings: one array for all, or a pytree like the value."""
    brought = change.value
    if brought is CLEAN:
        raise BadInput(
            "rules.clean stands for what is there in the plain run, and here is none: "
            "it is for the edits of an analysis or a site. Use rules.patch(isolated)."
        )
    if isinstance(brought, Isolated):
        name = change.name
        brought = brought.output if name is None else brought.inputs[name]
    structures: list[Any] = [jax.tree.structure(tree) for tree in (brought, value)]
    if structures[0] == structures[1]:
        return brought
    if structures[0].num_leaves != 1:
        raise BadInput(
            f"The rule brings {structures[0]}, but the value is {structures[1]}; "
            "give the same structure, or one array."
        )
    return jax.tree.map(lambda _: brought, value)


def _like(brought: Any, value: Any) -> Any:
    """Give what a rule brings the shape and dtype of the value."""
    return jnp.broadcast_to(jnp.asarray(brought, value.dtype), value.shape)


def _is_floating(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.inexact)


def _along(chosen: Any, count: int) -> Any:
    """Make a mask of `count` elements from an index, indices, a slice or a mask."""
    if isinstance(chosen, int | slice) or (
        isinstance(chosen, Sequence) and not any(isinstance(x, bool) for x in chosen)
    ):
        along = np.zeros(count, bool)
        try:
            along[chosen if isinstance(chosen, int | slice) else list(chosen)] = True
        except IndexError:
            raise BadInput(
                f"Element {chosen} was asked for, but there are {count}, 0 to "
                f"{count - 1}."
            ) from None
        return jnp.asarray(along)
    mask = jnp.asarray(chosen)
    if jnp.issubdtype(mask.dtype, jnp.integer):
        return _along(np.atleast_1d(np.asarray(mask)).tolist(), count)
    if mask.shape != (count,):
        raise BadInput(f"A mask of shape {mask.shape} was given for {count} elements.")
    return mask


zero = Change(_each(lambda x, _: jnp.zeros_like(x)))
"""Ablation: the value becomes zero."""

mean = Change(
    _each(lambda x, _: jnp.broadcast_to(x.mean(tuple(range(x.ndim - 1))), x.shape))
)
"""Mean ablation: each unit becomes its mean over all axes but the last."""


def replace(value: Any) -> Change:
    """Make the value another one.

    Args:
        value: An array that broadcasts to it, or a pytree of the same structure.
    """
    return Change(_brought, value)


def patch(source: Isolated) -> Change:
    """Make the value what it was in another call: activation patching.

    Args:
        source: The other call, taken out by `isolate`; its output counts, or after
            `on(name)` its input of that name.

    Example:
        >>> import flax.linen as nn, jax, jax.numpy as jnp
        >>> from theseus_track.capture import edit, isolate, rules
        >>> model = nn.Sequential([nn.Dense(3), nn.Dense(2)])
        >>> clean, corrupted = jnp.ones((1, 4)), jnp.zeros((1, 4))
        >>> variables = model.init(jax.random.key(0), clean)
        >>> source = isolate(model.apply, "layers_0")(variables, clean)
        >>> patched = edit(model.apply, {"layers_0": rules.patch(source)})
        >>> y = patched(variables, corrupted)
        >>> bool((y == model.apply(variables, clean)).all())
        True
    """
    return Change(_brought, source)


clean = Change(_brought, CLEAN)
"""Activation patching: the value becomes what it is in the run without edits.

For edits that run beside the plain function: `Site.edits`, `AnalysisBase.EDITS`.
"""


def add(vector: Any) -> Change:
    """Add a steering vector.

    Args:
        vector: An array that broadcasts to the value, or a pytree like it.
    """
    return Change(_added, vector)


def scale(factor: Any) -> Change:
    """Multiply by a factor, a number or an array that broadcasts to the value."""
    return Change(_scaled, factor)


def _added(change: Change, value: Any) -> Any:
    brought = _brought(change, value)
    return jax.tree.map(
        lambda x, y: x + _like(y, x) if _is_floating(x) else x, value, brought
    )


# One function, not one for each rule: rules that do the same are then equal.
_scaled = _each(lambda x, by: x * _like(by, x))
