"""How long figures take to build and to draw, and how large their files are.

Run it: `python -m tests.benchmarks.figures [ROUNDS]`. The budget: a heatmap of 1024 by
1024 becomes PDF and PNG in 2 s, of less than 1 MB together.
"""

import functools
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.analysis.figures.specimens import SPECIMENS
from theseus_track.analysis import figures
from theseus_track.render.files import figure_files

SHAPES = ((64, 128), (1024, 1024), (2048, 64), (60_000, 256))


def measure(name: str, build: Callable[[], Any], rounds: int) -> None:
    """Print the median seconds of building and of drawing, and the size."""
    built, drawn, size = [], [], 0
    for _ in range(rounds):
        begin = time.perf_counter()
        made = build()
        middle = time.perf_counter()
        size = sum(map(len, figure_files(made).values()))
        drawn.append(time.perf_counter() - middle)
        built.append(middle - begin)
    times = f"{statistics.median(built):8.3f} s {statistics.median(drawn):8.3f} s"
    sys.stdout.write(f"{name:20} {times} {size / 1e3:8.0f} KB\n")


def main(rounds: int) -> None:
    """Measure heatmaps of several shapes, and every specimen."""
    sys.stdout.write(f"{'figure':20} {'build':>10} {'draw':>10} {'files':>11}\n")
    random = np.random.default_rng(0)
    for shape in SHAPES:
        values = random.normal(size=shape).astype(np.float32)
        name = " x ".join(map(str, shape))
        measure(name, functools.partial(figures.heatmap, values), rounds)
    for name, build in SPECIMENS.items():
        measure(name, build, rounds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
