"""Which frameworks the running program uses, so that it pays for no other."""

import sys

__all__ = ["nnx_in_use"]


def nnx_in_use() -> bool:
    """Tell whether anything has imported `flax.nnx`; without it there is no module."""
    return "flax.nnx" in sys.modules
