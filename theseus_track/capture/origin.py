"""What an isolated call is made of, apart from its arrays."""

from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Frame", "Opened", "Origin"]


class Opened(Protocol):
    """A layer that was built anew, with a state of its own."""

    @property
    def layer(self) -> Any:
        """The layer, bound and ready to be called."""

    def state(self) -> Any:
        """Return what the layer's state is now, RNG counters included."""


class Frame(Protocol):
    """All of a layer but its arrays: its class, attributes and structure."""

    def open(self, params: Any, state: Any) -> Opened:
        """Build the layer anew."""

    def thaw(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return inputs as the method takes them, copied."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where an isolated call comes from.

    Attributes:
        path: Of the call, with the layer's number where it was in a scanned stack.
        method: The method called.
        cls: Qualified name of the layer's class.
        names: Parameters of the method, in the order of its signature.
        index: Which element of the axes that loops and `vmap` around it make.
    """

    path: str
    method: str
    cls: str
    names: tuple[str, ...]
    index: tuple[int, ...] = ()
