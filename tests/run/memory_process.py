"""A training of many evaluations, with figures and trackers, that watches its memory.

Called with a directory, the evaluations to warm up with, and those that follow. Prints
how much the process and its children grew meanwhile, in bytes.
"""

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from tests.models import Attention, gpt_and_variables, tokens
from theseus_track import open_run
from theseus_track.analysis import AnalysisBase, instrument


class Map(AnalysisBase):
    TARGET = Attention

    def analyze(self, layer: Any, inputs: Any) -> Any:
        return inputs.x[0]

    def plot(self, values: Any) -> Any:
        return self.heatmap(values)


class Table(AnalysisBase):
    TARGET = Attention

    def analyze(self, layer: Any, inputs: Any) -> Any:
        return inputs.x.mean()

    def plot(self, values: Any) -> Any:
        return {"mean": float(values), "rows": [[1, float(values)]]}


def resident() -> int:
    """Return what this process and those that it started hold in memory, in bytes."""
    page = os.sysconf("SC_PAGESIZE")
    return sum(page * int(_statm(pid).split()[1]) for pid in _family(os.getpid()))


def _family(pid: int) -> Iterator[int]:
    yield pid
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            yield from _family(int(child))


def _statm(pid: int) -> str:
    return Path(f"/proc/{pid}/statm").read_text()


if __name__ == "__main__":
    place, before, after = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    model, variables = gpt_and_variables()
    evaluate = instrument(jax.jit(model.apply), [Map, Table])
    with open_run(place, sinks=["tensorboard", "wandb"]) as run:
        began = 0
        for step in range(before + after):
            values = evaluate(variables, tokens())[1]
            run.log(values, step=step)
            run.log_metrics({"loss": 1.0}, step=step)
            if step % 10 == 9:
                run.flush()
            if step == before - 1:
                gc.collect()
                began = resident()
        run.flush()
        gc.collect()
        print(resident() - began)  # noqa: T201
