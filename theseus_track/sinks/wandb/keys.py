"""Names in W&B: one key for each thing shown, never one key for two.

Text becomes `[A-Za-z0-9_-]`, with every other character written %XX as in a URL, so
that `urllib.parse.unquote` gives each piece back. W&B sorts and filters by such keys,
and the names of its media files begin with them. A key that would be too long for a
file name is cut and ends in a digest; only such keys hold a `~`, and the config of the
W&B run tells what they stand for.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from theseus_track.records.tracker_names import percent, wandb_key

__all__ = [
    "METRICS",
    "RECORDS",
    "RESULTS",
    "StepKeys",
    "escaped",
    "figure_key",
    "fit",
    "json_key",
    "leaf_key",
    "metric_key",
    "mirrored_key",
    "table_key",
]

_LONGEST = 200
_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_IN_METRIC = re.compile(r"[^A-Za-z0-9_./-]")
_BESIDE = ("json", "table")
_OURS = "theseus"
_RESULTS = "analysis"


RECORDS: Final = "theseus/records"
"""The key that says which records of the ledger a row shows. Where it cannot be read
back, delivery is at least once: a value that W&B shows twice is the same one where
key and record are."""


class StepKeys:
    """The two keys that say which step and time a row's values belong to."""

    def __init__(self, step: str, time: str) -> None:
        """Name them.

        Args:
            step: The key of the training step; no "." may be in it.
            time: The key of the wall time, in seconds since the epoch.
        """
        self.step = step
        self.time = time


# A row may hold the results of one step and the metrics of another.
RESULTS: Final = StepKeys("theseus/step", "theseus/time")
METRICS: Final = StepKeys("theseus/train_step", "theseus/train_time")


def figure_key(name: str, part: str) -> str:
    """Return the key of a figure."""
    return wandb_key(name, part)


def json_key(name: str, part: str) -> str:
    """Return the key of a JSON value shown as a whole."""
    return f"{wandb_key(name, part)}/json"


def table_key(name: str, part: str) -> str:
    """Return the key of the table in a JSON value."""
    return f"{wandb_key(name, part)}/table"


def leaf_key(name: str, part: str, path: Iterable[str]) -> str:
    """Return the key of one number in a JSON value.

    Args:
        name: The NAME of the result.
        part: Its part, or "".
        path: The keys that lead to the number; none when the value is a number.
    """
    # Not "/": it would open one more section in W&B.
    leaf = ".".join(percent(_IN_NAME, key) for key in path) or "value"
    leaf = _escape_first(leaf) if leaf in _BESIDE else leaf
    return f"{wandb_key(name, part)}/{leaf}"


def metric_key(name: str) -> str:
    """Return the key of a metric in a run of ours: its name, if W&B can hold it."""
    key = percent(_IN_METRIC, name)
    # Keys that begin with "_" are W&B's own, and two sections are ours.
    reserved = key.startswith("_") or key.split("/")[0] in (_OURS, _RESULTS)
    return _escape_first(key) if reserved else key


def mirrored_key(name: str) -> str:
    """Return the key of a metric in a run of the user's, which has keys of its own."""
    return f"{_OURS}/metrics/{percent(_IN_METRIC, name)}"


def escaped(text: str) -> str:
    """Return a text as `[A-Za-z0-9_-]` and %XX, so that nothing separates in it."""
    return percent(_IN_NAME, text)


def fit(key: str) -> str:
    """Return a key as W&B gets it: cut if it is too long, to one of its own."""
    if len(key) <= _LONGEST:
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return f"{key[: _LONGEST - len(digest) - 1]}~{digest}"


def _escape_first(text: str) -> str:
    return f"%{ord(text[0]):02X}{text[1:]}"
