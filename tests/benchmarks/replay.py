"""`python -m tests.benchmarks.replay`: what a replay costs for each checkpoint.

Every figure is a ratio of two times taken in this one run, alternating. The *pieces*
are what any replay has to do for a checkpoint: read the arrays that the forward pass
needs, run it, and draw; they are measured alone, one after the other, and added.
"""

import argparse
import contextlib
import csv
import functools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import jax

from theseus_track.analysis import instrument
from theseus_track.checkpoints import find_checkpoints, restore
from theseus_track.demo import (
    Activations,
    AttentionPatterns,
    PretrainGPT,
    ResidualNorms,
)
from theseus_track.jobs.place import saved_in
from theseus_track.render import Renderer, normalise
from theseus_track.replay import backfill, find_target, plan_replay
from theseus_track.store import Store

ANALYSES = (Activations, AttentionPatterns, ResidualNorms)
COMPILE = "/jax/core/compile/backend_compile_duration"


def trained(root: Path, *, quick: bool) -> None:
    """Train a GPT for as many steps as it has checkpoints."""
    size = {"layers": 4, "features": 128} if quick else {"layers": 8, "features": 384}
    steps = 4 if quick else 8
    PretrainGPT(steps=steps, checkpoint_every=1, eval_every=steps, **size)(
        root, name="train", id="source"
    )


def timed(work: Callable[[], object]) -> float:
    """Return how long some work takes, in seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def naive(root: Path) -> None:
    """Read whole states, compile at each checkpoint, draw in this process."""
    run = Store(root).run("source")
    directory = saved_in(run)
    assert directory is not None
    job = PretrainGPT(**run.info.config)
    job.setup()
    batch = job.batch()
    with contextlib.closing(Renderer()) as renderer:
        for checkpoint in find_checkpoints(directory).by_step().values():
            state = restore(checkpoint, job.state).tree
            made = [job.bind(cls()) for cls in ANALYSES]
            step = instrument(jax.jit(lambda v, b, j=job: j.eval_step(v, b)), made)
            _, values = step(state.variables, batch)
            host = jax.device_get(values)
            for analysis in made:
                renderer.render(normalise(analysis.plot(host[analysis.NAME])))


def ours(root: Path) -> None:
    """Replay, as the command does."""
    plan = plan_replay(find_target("source", ANALYSES, root=root))
    assert backfill(plan).complete


def pieces(root: Path) -> dict[str, float]:
    """Measure reading, computing and drawing alone; seconds for one checkpoint."""
    target = find_target("source", ANALYSES, root=root)
    step = instrument(target.recipe.eval_step, target.analyses)
    batch = target.recipe.make_batch()
    found: dict[str, list[float]] = {"read": [], "compute": [], "draw": []}
    with contextlib.closing(Renderer()) as renderer:
        for checkpoint in find_checkpoints(target.directory).by_step().values():
            began = time.perf_counter()
            variables = restore(
                checkpoint, target.recipe.variables, take=target.recipe.take
            ).tree
            jax.block_until_ready(variables)
            read = time.perf_counter()
            _, values = step(variables, batch)
            jax.block_until_ready(values)
            computed = time.perf_counter()
            host = jax.device_get(values)
            for analysis in target.analyses:
                renderer.render(normalise(analysis.plot(host[analysis.NAME])))
            drawn = time.perf_counter()
            for name, seconds in zip(
                found, (read - began, computed - read, drawn - computed), strict=True
            ):
                found[name].append(seconds)
    # The first one compiles and starts the worker, which a replay does once.
    return {name: statistics.median(times[1:]) for name, times in found.items()}


def forget(root: Path) -> None:
    """Delete what was replayed, so that it is done again."""
    for file in Store(root).run("source").dir.iterdir():
        if file.suffix in (".jsonl", ".bin"):
            file.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small model, one round")
    parser.add_argument("--csv", type=Path, help="where to write the figures")
    options = parser.parse_args()
    compiles: list[float] = []

    def listen(event: str, duration_secs: float, **_: object) -> None:
        if event == COMPILE:
            compiles.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(listen)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        trained(root, quick=options.quick)
        count = len(list((root / "checkpoints" / "source").iterdir()))
        times: dict[str, list[float]] = {"naive": [], "ours": []}
        for _ in range(1 if options.quick else 3):
            for name, work in (("naive", naive), ("ours", ours)):
                times[name].append(timed(functools.partial(work, root)) / count)
                forget(root)
        alone = pieces(root)
        del compiles[:]
        ours(root)
    each = {name: statistics.median(found) for name, found in times.items()}
    rows = {
        "checkpoints": float(count),
        "compiles of one replay": float(len(compiles)),
        "replay / naive loop": each["ours"] / each["naive"],
        "replay / (read + compute + draw)": each["ours"] / sum(alone.values()),
        **{
            f"{k}, share of the pieces": v / sum(alone.values())
            for k, v in alone.items()
        },
    }
    for name, value in rows.items():
        sys.stdout.write(f"{name:<36}{value:.2f}\n")
    if options.csv:
        with options.csv.open("w", newline="") as file:
            csv.writer(file).writerows([("measure", "value"), *rows.items()])
    return 0


if __name__ == "__main__":
    sys.exit(main())
