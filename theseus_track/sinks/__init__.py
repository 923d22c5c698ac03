"""Projections of the ledger into trackers: one contract, one owner thread per sink.

What comes in: items (a figure, a JSON value, a row of metrics) that the ledger
already holds, or a run of it. What goes out: the same items in a tracker, and for
each a receipt. A sink may fail, block or vanish: the training never waits and never
sees it, and what was not delivered is in the ledger still.

    delivery = Delivery(open_sink("tensorboard:logs", info), info)
    delivery.offer(item)            # returns at once
    delivery.flush(timeout=10.0)    # True when all is written
    print(delivery.close(timeout=60.0))
    print(sync("train-gpt"))        # later, from the ledger alone

This layer touches the tracker's own files and connections and nothing else. A
tracker's package is imported when its sink is opened, not before. A sink of
another package joins by the entry point group `theseus_track.sinks` and proves
itself with `theseus_track.sinks.conformance`.
"""

from theseus_track.sinks.catch_up import SyncReport, announce, sync
from theseus_track.sinks.contract import Backfill, Capabilities, Changes, Receipt, Sink
from theseus_track.sinks.delivery import Delivery
from theseus_track.sinks.memory import MemorySink
from theseus_track.sinks.registry import check_sink, open_sink, sink_names
from theseus_track.sinks.report import SinkReport
from theseus_track.sinks.retry import RetryPolicy
from theseus_track.sinks.tensorboard import TensorBoardSink, viewing_command
from theseus_track.sinks.wandb import WandbSink

__all__ = [
    "Backfill",
    "Capabilities",
    "Changes",
    "Delivery",
    "MemorySink",
    "Receipt",
    "RetryPolicy",
    "Sink",
    "SinkReport",
    "SyncReport",
    "TensorBoardSink",
    "WandbSink",
    "announce",
    "check_sink",
    "open_sink",
    "sink_names",
    "sync",
    "viewing_command",
]
