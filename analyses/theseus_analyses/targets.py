"""Predicates for `TARGET` that several analyses share."""

from typing import Any

__all__ = ["any_module"]


def any_module(module: Any) -> bool:  # noqa: ARG001 (TARGET calls it with the module)
    """Accept every module."""
    return True
