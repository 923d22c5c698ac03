"""What an analysis draws of a value, for tests that look into it."""

from typing import Any

__all__ = ["draw"]


def draw(host: Any) -> Any:
    """Return what `plot` makes of a HostValue."""
    return host.analysis.plot(host.value)
