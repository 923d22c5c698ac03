"""W&B as a sink: results at their true step, in the user's run or in one of ours.

What comes in: items. What goes out: rows of one W&B run,

    analysis/<NAME>[.<PART>]           figures
    analysis/<NAME>[.<PART>]/json      JSON values, and beside them
    analysis/<NAME>[.<PART>]/table     their tables, a few versions of each
    analysis/<NAME>[.<PART>]/<LEAF>    their numbers

A W&B run has one counter, and what is logged below it is dropped without an error.
So no result depends on it: each row says its training step in `theseus/step`, the
x axis that all of these keys are defined on. There are two ways to write rows.

- **Riding** on a run that the user logs to. Their counter belongs to them: our
  values join the row that they are filling, at most one step of ours in each.
- **Owning** a run that we began, with the metrics in it. Rows wait for the
  figures of their step, so that the counter is the training step.

Which one it is, is decided at the first delivery: by whether a W&B run exists. What
`sync` delivers afterwards is **appended**: to the run of the training once nobody can
be writing to it, else to a companion run in the same group (`choice.py`).
"""

from theseus_track.sinks.wandb.sink import WandbSink

__all__ = ["WandbSink"]
