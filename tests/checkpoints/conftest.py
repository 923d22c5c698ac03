"""Checkpoints that the tests of this layer share."""

from tests.checkpoints.saved import saved

__all__ = ["saved"]
