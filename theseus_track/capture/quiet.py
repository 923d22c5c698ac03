"""Whether the observers of this thread are shut off, and for which view."""

import threading
from typing import Protocol, runtime_checkable

__all__ = ["QUIET", "Rewindable"]


@runtime_checkable
class Rewindable(Protocol):
    """A view that is brought back to the entry of the real call."""

    def rewind(self) -> None:
        """Forget what calls of the view's layer did to its state."""


class _Quiet(threading.local):
    """What is so while an analysis uses its view, in this thread.

    Attributes:
        on: Observers are shut off.
        view: The view to rewind before each call; None if it needs none.
        inside: A call on a view is running already.
    """

    def __init__(self) -> None:
        self.on = False
        self.view: Rewindable | None = None
        self.inside = False


QUIET = _Quiet()
