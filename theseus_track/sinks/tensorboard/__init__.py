"""TensorBoard as a sink: event files that both of its loaders show right.

What comes in: items. What goes out: below a log directory,

    <logdir>/<run>/                        metrics, in an event file of ours
    <logdir>/<run>/theseus/                figures, JSON values, their numbers
    <logdir>/<run>/theseus-replay-<n>/     results that came late
    <logdir>/<run>/theseus-metrics-<n>/    metrics that came late

TensorBoard 2.21 has two loaders, and what one forgives the other hides: the
default one drops every later step of a tag when a lower one follows, the other
one stops reading a file when a newer one appears beside it. So within each of
these directories the steps of a tag only ascend, and one process writes one file
at a time. Where nobody else writes, late steps have the file made anew instead,
sorted: when `sync` fills it from the ledger, and when a training goes on with an
older run. Tags and steps are those of the ledger, and so is the wall time.
"""

from theseus_track.sinks.tensorboard.sink import TensorBoardSink
from theseus_track.sinks.tensorboard.viewing import viewing_command

__all__ = ["TensorBoardSink", "viewing_command"]
