"""What an interceptor tells, whatever the framework: the calls, as they happen."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from theseus_track.capture.inputs import Inputs
from theseus_track.capture.paths import Path

__all__ = ["Changer", "LiveCall", "Observer", "View"]


@dataclass(frozen=True, kw_only=True)
class LiveCall:
    """One call of a module's method, while it happens.

    Attributes:
        module: The live module. Read it, but never call it: that would change it.
        path: Where the call happens; its number is not known while tracing.
        arguments: The named arguments, made on request.
        view: The module as it was at the entry of the call, with a state of its
            own; None where the observer needs none.
        turn: How many calls were traced at this path before. In traces kept apart
            (see `private_trace`) it tells calls from each other; a loop's body may
            be traced twice, though, so it is not the number of the call.
        inside: Paths of the wanted calls that this one happens in, outermost first.
    """

    module: Any
    path: Path
    arguments: Callable[[], dict[str, Any]] = field(repr=False)
    view: "View | None" = field(repr=False)
    turn: int
    inside: tuple[Path, ...]

    @property
    def cls(self) -> str:
        """Name of the module's class."""
        return type(self.module).__name__

    @property
    def qualname(self) -> str:
        """Qualified name of the module's class."""
        return f"{type(self.module).__module__}.{type(self.module).__qualname__}"

    def inputs(self, output: Any) -> Inputs:
        """Return the arguments and the output, as analyses see them."""
        return Inputs(self.arguments(), output=output)


class View(Protocol):
    """An isolated module: what happens to it stays in it."""

    @property
    def entry(self) -> Any:
        """The module as it was at the entry of the call; to be read, not called."""

    def run(self, function: Callable[[Any], Any]) -> Any:
        """Call a function with the module; no observer sees what it does."""


class Observer(Protocol):
    """Sees calls, and may replace what they return."""

    @property
    def needs_view(self) -> bool:
        """Whether calls come with a view."""

    def wants(self, module: Any, path: Path) -> bool:
        """Tell whether `returned` is to be called for this call.

        Called at the entry of every call while tracing. JAX may trace a body twice
        or not at all, so nothing may depend on how often this is called.
        """

    def returned(self, call: LiveCall, output: Any) -> Any:
        """Take part in a call that has just returned; return what the caller gets."""


@runtime_checkable
class Changer(Observer, Protocol):
    """An observer that may also replace what a wanted call is given."""

    def given(
        self,
        module: Any,
        path: Path,
        turn: int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what the method is to be called with."""
