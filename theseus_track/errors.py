"""Every exception that theseus-track raises on purpose, and how it names the unknown.

Nothing comes in but values to name; out go exceptions whose message says what
happened, the offending value, what was allowed and what to do.
"""

import difflib
from collections.abc import Iterable

__all__ = [
    "AnalysisFault",
    "BadInput",
    "CaptureError",
    "CheckpointError",
    "CheckpointMismatch",
    "ClosedOverState",
    "DeliveryError",
    "LedgerError",
    "NotFound",
    "PayloadPending",
    "PlanError",
    "RegistryError",
    "RenderError",
    "TheseusError",
    "UnreachedCall",
    "UnsupportedProgram",
    "describe_unknown",
]


class TheseusError(Exception):
    """The base of every exception that theseus-track raises on purpose."""


class BadInput(TheseusError, ValueError):
    """A value given by the user cannot be used; nothing was written."""


class NotFound(TheseusError, LookupError):
    """A run, analysis, job, step or path of that name does not exist."""


class RegistryError(TheseusError, ValueError):
    """A key or name is already taken, or an entry cannot be loaded."""


class CaptureError(TheseusError):
    """A value could not be taken out of a traced program."""


class UnreachedCall(CaptureError, LookupError):
    """A selected call does not contribute to the outputs, or was never made."""


class UnsupportedProgram(CaptureError):
    """A value sits inside a primitive that cannot hand it out."""


class ClosedOverState(UnsupportedProgram):
    """A function changes an NNX node that it closes over; names the node."""


class AnalysisFault(TheseusError):
    """One analysis failed; the others and the training go on."""


class PlanError(TheseusError):
    """Every fault that `plan` found, together, before anything ran."""


class RenderError(TheseusError):
    """A figure or a JSON value could not be turned into files."""


class LedgerError(TheseusError, OSError):
    """The ledger cannot be created, written or read where it was asked for."""


class PayloadPending(LedgerError):
    """An array of a young record is not all there; it may still arrive."""


class CheckpointError(TheseusError, OSError):
    """A checkpoint cannot be written or read where it was asked for."""


class CheckpointMismatch(CheckpointError):
    """A checkpoint does not fit the model; the message is a table of its leaves.

    Attributes:
        differences: The leaves, as `theseus_track.checkpoints.Difference`.
    """

    def __init__(self, message: str, differences: tuple[object, ...]) -> None:
        super().__init__(message)
        self.differences = differences


class DeliveryError(TheseusError):
    """A sink did not take what it was given."""


def describe_unknown(kind: str, value: object, allowed: Iterable[str]) -> str:
    """Say that a name is unknown, name the closest match and at most ten valid ones.

    Args:
        kind: What was looked for, in the singular, such as "run" or "analysis".
        value: The name that was given.
        allowed: The names that exist.

    Returns:
        One line, ending in a full stop.
    """
    names = sorted({str(name) for name in allowed})
    if not names:
        return f"Unknown {kind} {value!r}: there is none."
    close = difflib.get_close_matches(str(value), names, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    shown = ", ".join(repr(name) for name in names[:10])
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"Unknown {kind} {value!r}.{hint} Known: {shown}{more}."
