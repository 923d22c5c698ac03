"""Frozen records that cross layers: what is written, drawn and delivered.

What comes in: plain values, numpy arrays and the Python standard library. What
goes out: immutable records that validate themselves where they are made, and
their JSON form. This layer touches no file, no JAX and no tracker.
"""

from theseus_track.records.item import FigureItem, Item, JsonItem, MetricsItem
from theseus_track.records.journal import (
    Beat,
    Delivered,
    End,
    Leaf,
    MetricsRecord,
    Part,
    ProbeRecord,
    Record,
    RecordRef,
    ResultRecord,
    Resumed,
    Source,
    StoredView,
    ValuesRecord,
    WriterRecord,
    record_from_json,
    record_to_json,
)
from theseus_track.records.names import check_name, check_step, safe_name
from theseus_track.records.run import RunInfo
from theseus_track.records.strict_json import dumps, loads, to_json_value
from theseus_track.records.tree import host_leaf, join_tree, split_tree
from theseus_track.records.view import View

__all__ = [
    "Beat",
    "Delivered",
    "End",
    "FigureItem",
    "Item",
    "JsonItem",
    "Leaf",
    "MetricsItem",
    "MetricsRecord",
    "Part",
    "ProbeRecord",
    "Record",
    "RecordRef",
    "ResultRecord",
    "Resumed",
    "RunInfo",
    "Source",
    "StoredView",
    "ValuesRecord",
    "View",
    "WriterRecord",
    "check_name",
    "check_step",
    "dumps",
    "host_leaf",
    "join_tree",
    "loads",
    "record_from_json",
    "record_to_json",
    "safe_name",
    "split_tree",
    "to_json_value",
]
