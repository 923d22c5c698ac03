"""The names and steps that a record may carry, checked where they are made."""

import operator
import re
from typing import SupportsIndex

from theseus_track.errors import BadInput

__all__ = ["check_name", "check_step", "safe_name"]

# TensorBoard and W&B keep steps as signed integers of 64 bits.
_LAST_STEP = 2**63 - 1
# Not `.` and `..`, which mean something else in every path.
_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.-]{1,80}")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
# Device names that Windows refuses as the stem of a file, whatever the suffix.
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)")


def check_name(name: object) -> str:
    """Return an analysis NAME, or say why it cannot be one.

    Args:
        name: The NAME of an analysis or of a host-side result.

    Returns:
        The same name.

    Raises:
        BadInput: When it is not 1 to 80 of the characters `A-Za-z0-9_.-`, or is "."
            or "..".
    """
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise BadInput(
        f"The name {name!r} cannot be used: a NAME is 1 to 80 characters out of "
        "A-Z a-z 0-9 _ . - , and not . or .. alone. Set NAME to such a name."
    )


def check_step(step: object) -> int:
    """Return a training step as a Python int, or say why it cannot be one.

    Args:
        step: The training step a result belongs to, >= 0. Python and numpy
            integers are taken, and so is a 0-d integer array on host or device.

    Returns:
        The step as a Python int.

    Raises:
        BadInput: When it is no integer, is negative or does not fit into 64 bits.
    """
    message = (
        f"step={step!r} is not a training step: it must be an integer >= 0. "
        "Pass the step of the training loop, such as step=int(state.step)."
    )
    if isinstance(step, bool) or not isinstance(step, SupportsIndex):
        raise BadInput(message)
    try:
        number = operator.index(step)
    except TypeError as error:
        raise BadInput(message) from error
    if number < 0:
        raise BadInput(message)
    if number > _LAST_STEP:
        raise BadInput(
            f"step={number} is above {_LAST_STEP}, the last that trackers can hold. "
            "Pass the step of the training loop, such as step=int(state.step)."
        )
    return number


def safe_name(text: str) -> str:
    """Turn any text into a file name that every system takes, reversibly.

    Bytes outside `A-Za-z0-9_-` become `.xx` (two hex digits of their UTF-8 form),
    so that two texts never give one name. Lone surrogates are kept apart too.

    Args:
        text: Any text; not longer than a caller's own limit allows.

    Returns:
        A non-empty name without separators, dots or blanks of its own.
    """
    if not text:
        return ".empty"
    if _RESERVED.fullmatch(text):
        return f".{ord(text[0]):02x}{text[1:]}"
    return _UNSAFE.sub(
        lambda match: "".join(
            f".{byte:02x}" for byte in match[0].encode("utf-8", "surrogatepass")
        ),
        text,
    )
