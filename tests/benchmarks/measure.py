"""Measuring programs side by side: what XLA counts, and times that alternate."""

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from tests.benchmarks.peers import Prepared

__all__ = ["Cost", "Spread", "compile_times", "cost", "run_times", "spread"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What XLA says of some programs before they run.

    Attributes:
        flops: Of all of them; a loop's body is counted once.
        temporary: The most that one of them needs besides arguments and results, bytes.
        returned: What all of them return, in bytes.
    """

    flops: float
    temporary: int
    returned: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A median and the quartiles around it."""

    median: float
    low: float
    high: float


def cost(programs: Sequence[Any], arguments: tuple[Any, Any]) -> Cost:
    """Compile programs and return what XLA counts; arguments may be shapes."""
    compiled = [program.lower(*arguments).compile() for program in programs]
    memory = [one.memory_analysis() for one in compiled]
    return Cost(
        flops=sum(float(one.cost_analysis()["flops"]) for one in compiled),
        temporary=max(int(one.temp_size_in_bytes) for one in memory),
        returned=sum(int(one.output_size_in_bytes) for one in memory),
    )


def compile_times(
    builds: Mapping[str, Callable[[], Prepared]],
    arguments: tuple[Any, Any],
    *,
    rounds: int,
) -> tuple[dict[str, list[float]], dict[str, Cost]]:
    """Trace and compile everything anew, in turn.

    Returns:
        Seconds, and what XLA counts, by name.
    """
    seconds: dict[str, list[float]] = {name: [] for name in builds}
    costs: dict[str, Cost] = {}
    for turn in range(rounds):
        for name in _turned(list(builds), turn):
            jax.clear_caches()
            begin = time.perf_counter()
            costs[name] = cost(builds[name]()[0], arguments)
            seconds[name].append(time.perf_counter() - begin)
    return seconds, costs


def run_times(
    runs: Mapping[str, Callable[[Any, Any], Any]],
    arguments: tuple[Any, Any],
    *,
    rounds: int,
) -> dict[str, list[float]]:
    """Run everything in turn, compiled before; returns seconds by name."""
    for run in runs.values():
        jax.block_until_ready(run(*arguments))
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds):
        for name in _turned(list(runs), turn):
            begin = time.perf_counter()
            jax.block_until_ready(runs[name](*arguments))
            seconds[name].append(time.perf_counter() - begin)
    return seconds


def spread(values: Sequence[float], base: Sequence[float]) -> Spread:
    """Return the ratio of a value to the base of the same round."""
    ratios = [value / other for value, other in zip(values, base, strict=True)]
    if len(ratios) == 1:
        return Spread(median=ratios[0], low=ratios[0], high=ratios[0])
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Spread(median=median, low=low, high=high)


def _turned(names: list[str], turn: int) -> list[str]:
    """Begin with another one in each round, so that none always comes first."""
    first = turn % len(names)
    return names[first:] + names[:first]
