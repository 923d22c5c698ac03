"""How long a ledger of many records takes to open, to look again, and to query.

Run it: `python tests/benchmarks/ledger_index.py [RECORDS] [RUNS]`. It writes a ledger
into a temporary directory and says seconds. The budget: 10^5 records are opened
cold in 5 s, and a query takes 100 ms.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from theseus_track.records import MetricsRecord, RunInfo
from theseus_track.store import LedgerWriter, NewPart, NewResult, NewValues, Store


def fill(root: Path, records: int, runs: int) -> None:
    """Write runs of values, results and metrics, a third of the records each."""
    steps = records // runs // 3
    part = NewPart(part="", kind="json", blobs={"json": b"{}"})
    for number in range(runs):
        info = RunInfo(project="p", name=f"n{number}", id=f"r{number}", created=0.0)
        with LedgerWriter.create(root, info) as writer:
            for step in range(steps):
                loss = {"train/loss": 1.0 / (step + 1)}
                (ref, _) = writer.append(
                    NewValues(
                        key="my/a",
                        name="a",
                        paths=("blocks_0/attn",),
                        step=step,
                        wall_time=0.0,
                        computed=0.0,
                        value=np.zeros(4, np.float32),
                    ),
                    MetricsRecord(step=step, wall_time=0.0, metrics=loss),
                )
                writer.append(
                    NewResult(
                        key="my/a",
                        name="a",
                        step=step,
                        wall_time=0.0,
                        parts=(part,),
                        values=ref,
                    )
                )


def timed(what: str, call: Callable[[], object]) -> None:
    """Call, and say how long it took, by the clock and on the processor."""
    wall, processor = time.perf_counter(), time.process_time()
    found = call()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    sys.stdout.write(f"{what}: {wall:.3f} s, {processor:.3f} s of CPU ({found})\n")


def measure(root: Path) -> None:
    """Open the ledger as a fresh process does, and ask it."""
    store = Store(root)

    def count() -> int:
        return sum(len(run.records()) for run in store.runs())

    timed("cold index", count)
    timed("nothing new", count)
    runs = store.runs()
    timed("results of all runs", lambda: sum(len(run.results()) for run in runs))
    timed(
        "runs where train/loss < 0.01",
        lambda: sum(
            any(row.metrics["train/loss"] < 0.01 for row in run.metrics())  # type: ignore[operator]
            for run in runs
        ),
    )
    timed("one run's latest", lambda: runs[0]["a"].latest.step)


def main(words: list[str]) -> None:
    """Fill in this process, measure in a fresh one."""
    if words[:1] == ["measure"]:
        measure(Path(words[1]))
        return
    records = int(words[0]) if words else 100_000
    runs = int(words[1]) if len(words) > 1 else 500
    with tempfile.TemporaryDirectory() as root:
        fill(Path(root), records, runs)
        subprocess.run([sys.executable, __file__, "measure", root], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
