"""`python -m tests.benchmarks.capture`: what analyses cost, beside other ways."""

import argparse
import csv
import dataclasses
import os
import platform
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import flax
import jax

from tests.benchmarks.measure import (
    Cost,
    Spread,
    compile_times,
    cost,
    run_times,
    spread,
)
from tests.benchmarks.model import GPT, KINDS, Sizes, make_step, shapes
from tests.benchmarks.peers import PEERS, Prepared
from tests.benchmarks.questions import SETS, asked
from theseus_track.analysis import instrument

BASE = "no analyses"
WAYS = (*(f"ours: {name}" for name in SETS), *PEERS)
BEGIN, END = "<!-- capture: begin -->", "<!-- capture: end -->"
QUICK = Sizes(layers=2, features=32, heads=2, context=32, batch=2, vocabulary=64)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One way of asking, on one kind of model; ratios are to no analyses at all.

    Attributes:
        kind: Of the model.
        variant: The way.
        flops: FLOPs by XLA's count, with the bodies of loops as often as they run.
        temporary: Memory for temporary values.
        returned: What the program returns, in bytes.
        time: The eval step, values on the host where the way puts them there.
        compile: Tracing and compiling.
        milliseconds: The eval step's median.
    """

    kind: str
    variant: str
    flops: float
    temporary: float
    returned: int
    time: Spread
    compile: Spread
    milliseconds: float


def builds_of(model: GPT, layer: int) -> dict[str, Callable[[], Prepared]]:
    """Return, by name, how each way is built."""
    step = make_step(model)

    def plain() -> Prepared:
        program = jax.jit(step)
        return [program], program

    def ours(name: str) -> Prepared:
        program = instrument(jax.jit(step), asked(name, layer=layer))
        return [program], program

    builds: dict[str, Callable[[], Prepared]] = {BASE: plain}
    builds |= {f"ours: {name}": lambda name=name: ours(name) for name in SETS}  # type: ignore[misc]
    builds |= {
        name: lambda make=make: make(model, layer)  # type: ignore[misc]
        for name, make in PEERS.items()
    }
    return builds


def flops_ratio(
    kind: str, variant: str, found: Cost, base: Cost, whole: float
) -> float:
    """Return the ratio to the whole forward pass.

    XLA counts the body of a loop once. What is added there runs once if it is asked of
    one layer, else as often as the loop turns.

    Args:
        kind: Of the model.
        variant: The way.
        found: Its cost.
        base: That of no analyses, on the same kind.
        whole: The FLOPs of the unrolled model.
    """
    if variant == "a forward for each analysis":
        return found.flops / base.flops
    once = variant in ("ours: reference", "ours: attention weights")
    turns = 1.0 if kind == "plain" or once else whole / base.flops
    return 1 + (found.flops - base.flops) * turns / whole


def measure(
    sizes: Sizes,
    kinds: Sequence[str] = KINDS,
    ways: Sequence[str] = WAYS,
    *,
    rounds: int,
    compiles: int,
) -> list[Row]:
    """Measure some ways on some kinds of model."""
    rows: list[Row] = []
    unrolled = GPT(sizes, "plain")
    whole = cost([jax.jit(make_step(unrolled))], shapes(unrolled)).flops
    for kind in kinds:
        model = GPT(sizes, kind)
        arguments = _arguments(model)
        builds = {
            name: build
            for name, build in builds_of(model, sizes.layers // 2).items()
            if name in (BASE, *ways)
        }
        compiled, costs = compile_times(builds, arguments, rounds=compiles)
        runs = {name: build()[1] for name, build in builds.items()}
        times = run_times(runs, arguments, rounds=rounds)
        rows += [
            Row(
                kind=kind,
                variant=name,
                flops=flops_ratio(kind, name, costs[name], costs[BASE], whole),
                temporary=costs[name].temporary / costs[BASE].temporary,
                returned=costs[name].returned,
                time=spread(times[name], times[BASE]),
                compile=spread(compiled[name], compiled[BASE]),
                milliseconds=1e3 * statistics.median(times[name]),
            )
            for name in builds
        ]
    return rows


def _arguments(model: GPT) -> tuple[Any, Any]:
    _, batch = shapes(model)
    tokens = jax.random.randint(
        jax.random.key(1), batch["tokens"].shape, 0, model.sizes.vocabulary
    )
    variables = jax.jit(model.init)(jax.random.key(0), tokens)
    return variables, {"tokens": tokens, "targets": tokens}


def write_csv(rows: Sequence[Row], file: Path) -> None:
    """Write the rows with all that was measured."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, _flat(rows[0]).keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(_flat, rows))


def _flat(row: Row) -> dict[str, object]:
    flat: dict[str, object] = {}
    for field in dataclasses.fields(row):
        value = getattr(row, field.name)
        if isinstance(value, Spread):
            flat |= {
                f"{field.name}_{part}": f"{getattr(value, part):.4f}"
                for part in ("median", "low", "high")
            }
        else:
            flat[field.name] = f"{value:.5f}" if isinstance(value, float) else value
    return flat


def table(rows: Sequence[Row], sizes: Sizes, rounds: int) -> str:
    """Return the rows as a Markdown table, under a line that says what was measured."""
    made = (
        f"{sizes.layers} layers of {sizes.features} features, {sizes.heads} heads, "
        f"{sizes.batch} sequences of {sizes.context} tokens, float32; median of "
        f"{rounds} rounds (quartiles); {jax.devices()[0].platform.upper()}, "
        f"{os.cpu_count()} cores; Python {platform.python_version()}, "
        f"JAX {jax.__version__}, Flax {flax.__version__}."
    )
    head = ("model", "way", "FLOPs", "temporary memory", "returned", "time", "compile")
    lines = [made, "", _line(head), _line(["---"] * 2 + ["---:"] * 5)]
    lines += [
        _line(
            (
                row.kind,
                row.variant,
                f"{row.flops:.3f}",
                f"{row.temporary:.2f}",
                f"{row.returned / 1e6:.2f} MB",
                f"{row.time.median:.2f} ({row.time.low:.2f} to {row.time.high:.2f})",
                f"{row.compile.median:.2f}",
            )
        )
        for row in rows
        if row.variant != BASE
    ]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def put_into(page: Path, text: str) -> None:
    """Put the table between the marks of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit(f"{page} has no marks {BEGIN} and {END}.")
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def main(words: Sequence[str] | None = None) -> None:
    """Measure, and write what was asked for."""
    parser = argparse.ArgumentParser(
        prog="tests.benchmarks.capture", description=__doc__
    )
    parser.add_argument(
        "--quick", action="store_true", help="a tiny model, to see that it runs"
    )
    parser.add_argument(
        "--kind", action="append", choices=KINDS, help="of the model; else all"
    )
    parser.add_argument(
        "--way", action="append", choices=WAYS, help="to the values; else all"
    )
    parser.add_argument("--rounds", type=int, help="rounds of run times; else 15")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="put the table into this page"
    )
    options = parser.parse_args(words)
    sizes = QUICK if options.quick else Sizes()
    rounds = options.rounds or (2 if options.quick else 15)
    compiles = 1 if options.quick else 3
    rows = measure(
        sizes,
        options.kind or KINDS,
        options.way or WAYS,
        rounds=rounds,
        compiles=compiles,
    )
    text = table(rows, sizes, rounds)
    if options.csv:
        write_csv(rows, options.csv)
    if options.page:
        put_into(options.page, text)
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
