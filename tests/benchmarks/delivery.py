"""`python -m tests.benchmarks.delivery`: what logging costs the thread that trains."""

import argparse
import csv
import dataclasses
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import optax

from tests.benchmarks.measure import Spread, spread
from tests.benchmarks.model import GPT, Sizes, loss_of, make_step
from tests.benchmarks.questions import asked
from theseus_track import open_run
from theseus_track.analysis import AnalysisBase, instrument
from theseus_track.run import RunHandle

QUICK = Sizes(layers=2, features=32, heads=2, context=32, batch=2, vocabulary=64)
SINKS = ("tensorboard", "memory")
# For drawing what was logged, which is not measured; in seconds.
_LONGEST = 600.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure.

    Attributes:
        what: What was measured.
        budget: What it may be, in words.
        found: The median and the quartiles.
        unit: "ms", or "" for a ratio.
    """

    what: str
    budget: str
    found: Spread
    unit: str = ""


def drawn(layer: int) -> list[type[AnalysisBase]]:
    """Return the four analyses of the reference set, each with a figure."""

    def plot(self: AnalysisBase, values: Any) -> Any:
        return self.heatmap(values) if values.ndim == 2 else self.line(values)

    return [
        type(one.__name__, (one,), {"plot": plot, "__module__": one.__module__})
        for one in asked("reference", layer=layer)
    ]


class Loop:
    """A small training with an evaluation that looks inside every so many steps."""

    def __init__(self, sizes: Sizes, *, every: int, evaluations: int) -> None:
        """Compile everything.

        Args:
            sizes: Of the model.
            every: Training steps to an evaluation.
            evaluations: How many there are in a round.
        """
        model = GPT(sizes, "plain")
        self._every, self._evaluations = every, evaluations
        shape = (sizes.batch, sizes.context)
        tokens = jax.random.randint(jax.random.key(1), shape, 0, sizes.vocabulary)
        self._batch = {"tokens": tokens, "targets": tokens}
        self._variables = jax.jit(model.init)(jax.random.key(0), tokens)
        optimizer = optax.adam(1e-3)
        self._state = jax.jit(optimizer.init)(self._variables)

        @jax.jit
        def train(variables: Any, state: Any) -> tuple[Any, Any]:
            def loss(variables: Any) -> jax.Array:
                return loss_of(
                    model.apply(variables, self._batch["tokens"]), self._batch
                )

            updates, state = optimizer.update(jax.grad(loss)(variables), state)
            return optax.apply_updates(variables, updates), state

        self._train = train
        self.eval: Callable[..., Any] = instrument(
            jax.jit(make_step(model)), drawn(sizes.layers // 2)
        )
        jax.block_until_ready(self._train(self._variables, self._state))
        self.evaluate()

    def evaluate(self) -> Any:
        """Run one evaluation; its values may still be computing."""
        return self.eval(self._variables, self._batch)[1]

    def holds(self, run: RunHandle, count: int) -> Iterator[float]:
        """Give how long `run.log` held the thread, in seconds, each time."""
        for step in range(count):
            values = self.evaluate()
            begin = time.perf_counter()
            run.log(values, step=step)
            yield time.perf_counter() - begin
            jax.block_until_ready(values)

    def seconds(self, run: RunHandle | None) -> float:
        """Train one round, with evaluations that are logged, or not."""
        variables, state = self._variables, self._state
        begin = time.perf_counter()
        for evaluation in range(self._evaluations):
            for _ in range(self._every):
                variables, state = self._train(variables, state)
            jax.block_until_ready(variables)
            values = self.evaluate()
            if run is not None:
                run.log(values, step=evaluation)
            jax.block_until_ready(values)
        return time.perf_counter() - begin


def measure(sizes: Sizes, *, rounds: int, every: int, evaluations: int) -> list[Row]:
    """Measure both figures, with two sinks."""
    loop = Loop(sizes, every=every, evaluations=evaluations)
    with tempfile.TemporaryDirectory() as root:
        with open_run(root, name="hold", sinks=SINKS) as run:
            run.log(loop.evaluate(), step=0, wait=True)
            held = [1e3 * one for one in loop.holds(run, 5 * rounds)]
            run.flush(_LONGEST)
        apart, beside = [], []
        for number in range(rounds):
            with open_run(root, name=f"round-{number}", sinks=SINKS) as run:
                # The render process has started when the clock does.
                run.log(loop.evaluate(), step=0, wait=True)
                beside.append(loop.seconds(run))
                run.flush(_LONGEST)
            apart.append(loop.seconds(None))
    low, median, high = statistics.quantiles(held, n=4, method="inclusive")
    return [
        Row(
            what="`run.log` holds the thread, 4 figures, eval still computing",
            budget="<= 2 ms",
            found=Spread(median=median, low=low, high=high),
            unit="ms",
        ),
        Row(
            what="training while results render and deliver, to training without",
            budget=">= 0.95",
            found=spread(apart, beside),
        ),
    ]


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table of Markdown."""
    lines = ["| what | median (quartiles) | budget |", "| --- | --- | --- |"]
    for row in rows:
        found = row.found
        unit = f" {row.unit}" if row.unit else ""
        cell = f"{found.median:.3f} ({found.low:.3f} to {found.high:.3f}){unit}"
        lines.append(f"| {row.what} | {cell} | {row.budget} |")
    return "\n".join(lines)


def write_csv(rows: Sequence[Row], file: Path) -> None:
    """Write the rows with all that was measured."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["what", "median", "low", "high", "unit", "budget"])
        for row in rows:
            found = dataclasses.astuple(row.found)
            writer.writerow([row.what, *found, row.unit, row.budget])


def main(words: Sequence[str] | None = None) -> None:
    """Measure, and write what was asked for."""
    parser = argparse.ArgumentParser(
        prog="tests.benchmarks.delivery", description=__doc__
    )
    parser.add_argument(
        "--quick", action="store_true", help="a tiny model, to see that it runs"
    )
    parser.add_argument("--rounds", type=int, help="rounds of training; else 7")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write all figures")
    options = parser.parse_args(words)
    rows = measure(
        QUICK if options.quick else Sizes(),
        rounds=options.rounds or (2 if options.quick else 7),
        every=2 if options.quick else 20,
        evaluations=1 if options.quick else 2,
    )
    if options.csv:
        write_csv(rows, options.csv)
    sys.stdout.write(f"{table(rows)}\n")


if __name__ == "__main__":
    main()
