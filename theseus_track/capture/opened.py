"""A function apart from the arguments that it was given before."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Opened"]


@dataclass(frozen=True)
class Opened:
    """A function apart from the arguments that a partial gave it.

    Attributes:
        fn: The function that takes all arguments.
        args: Those that it was given by position; they come first.
        kwargs: Those that it was given by name.
        partial: What gave them; None where there are none.
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    partial: Callable[..., Any] | None = None

    def give(self, other: Callable[..., Any]) -> Callable[..., Any]:
        """Give the same to another function of the same arguments."""
        if self.partial is None:
            return other
        given: Callable[..., Any] = self.partial(other, *self.args, **self.kwargs)
        return given

    def whole(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return all arguments of a call, those given before among them."""
        return (*self.args, *args), {**self.kwargs, **kwargs}
