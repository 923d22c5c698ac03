"""Names in TensorBoard: one tag for each thing shown, never one tag for two.

    figure      NAME              NAME.PART
    JSON text   NAME/table        NAME.PART/table
    a number    NAME/LEAF         NAME.PART/LEAF
    a metric    its own name

Text stays as it is but for the characters that separate the pieces above and
those that a tag cannot hold; they are written %XX, as in a URL, so that
`urllib.parse.unquote` gives each piece back. TensorBoard draws one kind of thing
per tag: a second kind under the same tag breaks both.
"""

import re
from collections.abc import Iterable

from theseus_track.records.tracker_names import UNSAFE, percent, tensorboard_tag

__all__ = ["figure_tag", "leaf_tag", "metric_tag", "table_tag"]

_IN_METRIC = re.compile(f"[{UNSAFE}]")
_IN_LEAF = re.compile(f"[{UNSAFE}/]")
_TABLE = "table"


def figure_tag(name: str, part: str) -> str:
    """Return the tag of a figure."""
    return tensorboard_tag(name, part)


def table_tag(name: str, part: str) -> str:
    """Return the tag of a JSON value shown as text."""
    return f"{figure_tag(name, part)}/{_TABLE}"


def leaf_tag(name: str, part: str, path: Iterable[str]) -> str:
    """Return the tag of one number in a JSON value.

    Args:
        name: The NAME of the result.
        part: Its part, or "".
        path: The keys that lead to the number; none when the value is a number.
    """
    leaf = "/".join(percent(_IN_LEAF, key) for key in path) or "value"
    leaf = "%74able" if leaf == _TABLE else leaf
    return f"{figure_tag(name, part)}/{leaf}"


def metric_tag(key: str) -> str:
    """Return the tag of a metric; slashes in it group metrics, as everywhere."""
    return percent(_IN_METRIC, key)
