"""What a result is called in each tracker; known before anything is delivered."""

import re

__all__ = ["UNSAFE", "percent", "tensorboard_tag", "tracker_names", "wandb_key"]

UNSAFE = "%\x00-\x1f\x7f-\x9f\ud800-\udfff"
"""Control characters and lone surrogates, for a pattern: no tag can hold them."""

_IN_TAG = re.compile(f"[{UNSAFE}./]")
_IN_TAG_PART = re.compile(f"[{UNSAFE}/]")
_IN_KEY = re.compile(r"[^A-Za-z0-9_-]")
_IN_KEY_PART = re.compile(r"[^A-Za-z0-9_.-]")


def tracker_names(name: str) -> dict[str, str]:
    """Return by tracker what a result of that NAME is called there.

    A part of it adds `.PART`; the sinks say what else they show beside a figure.
    """
    return {"W&B": wandb_key(name, ""), "TensorBoard": tensorboard_tag(name, "")}


def wandb_key(name: str, part: str) -> str:
    """Return the key of a figure in W&B."""
    piece = f"analysis/{percent(_IN_KEY, name)}"
    return f"{piece}.{percent(_IN_KEY_PART, part)}" if part else piece


def tensorboard_tag(name: str, part: str) -> str:
    """Return the tag of a figure in TensorBoard, in the sub-run of our results."""
    piece = percent(_IN_TAG, name)
    return f"{piece}.{percent(_IN_TAG_PART, part)}" if part else piece


def percent(unsafe: re.Pattern[str], text: str) -> str:
    """Write unsafe characters as %XX, as in a URL; `urllib.parse.unquote` reads it.

    Args:
        unsafe: Matches one character that is not to stay; "%" must be one.
        text: Any text. A lone "%" stands for the empty one.
    """
    return unsafe.sub(_as_hex, text) if text else "%"


def _as_hex(match: re.Match[str]) -> str:
    octets = match[0].encode("utf-8", "surrogatepass")
    return "".join(f"%{octet:02X}" for octet in octets)
