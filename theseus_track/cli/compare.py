"""`theseus-track compare RUN_A RUN_B`: how the values of one analysis differ."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from theseus_track.cli.options import json_option, root_option

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from theseus_track.records import View
    from theseus_track.records.strict_json import Json
    from theseus_track.store import Comparison

__all__ = ["command"]

# More panels than this are no figure that people read.
_PANELS = 12


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN_A RUN_B..")
@root_option
@json_option
@click.option(
    "-a",
    "--analysis",
    "name",
    required=True,
    metavar="NAME",
    help="The analysis, by NAME or key.",
)
@click.option(
    "--step",
    "steps",
    type=click.IntRange(min=0),
    multiple=True,
    help="Training step, once for all or once for each run; else the last of each.",
)
@click.option("--exact", is_flag=True, help="Only that very step, not an earlier one.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the difference of the first two to FILE: .png, .pdf or .svg.",
)
def command(
    runs: tuple[str, ...],
    root: str | None,
    as_json: bool,
    name: str,
    steps: tuple[int, ...],
    exact: bool,
    out: Path | None,
) -> None:
    """Compare the values of one analysis in two or more runs, cell by cell.

    A RUN is an id, a name (its newest run is meant) or the beginning of one; the same
    one twice, with two steps, compares steps. Of each, the nearest result at or before
    the step is taken, and its true step printed.
    """
    from theseus_track.cli.output import one_line, print_json, print_table
    from theseus_track.errors import BadInput
    from theseus_track.store import compare

    if out is not None and out.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise BadInput(f"The file {out} must end in .png, .pdf or .svg.")
    if out is not None and not out.absolute().parent.is_dir():
        raise BadInput(f"There is no directory for {out}; make it or choose another.")
    given = steps[0] if len(steps) == 1 else steps or None
    both = compare(runs, name, given, exact=exact, root=root)
    # Before anything is printed: a file that cannot be written is the whole answer.
    if out is not None:
        _save(_figure(both), out)
    if as_json:
        print_json(_json(both, out))
        return
    for letter, result in zip(_letters(both), both.results, strict=True):
        where = f"{result.run.name} (id {result.run.id})"
        line = f"{letter}: {where}  {result.name}  step {result.step}"
        click.echo(one_line(f"{line}  {result.source.kind}"))
    for what, how in both.mismatches.items():
        click.echo(one_line(f"differs: {what}: {how}"))
    head = ("LEAF", "SHAPE", "MAX |A-B|", "RMS A-B", "EQUAL", "MEAN", "STD")
    print_table(head, [_row(leaf, both) for leaf in both.values])
    if out is not None:
        click.echo(one_line(f"Drawn to {out}"))


def _letters(both: "Comparison") -> list[str]:
    known = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return [known[i] if i < len(known) else str(i) for i in range(len(both.results))]


def _row(leaf: str, both: "Comparison") -> tuple[str, ...]:
    shape = "x".join(map(str, both.values[leaf].shape[1:])) or "scalar"
    largest, rms, equal = _sizes(both.difference[leaf])
    spread = [_mean(numbers[leaf]) for numbers in (both.mean, both.std)]
    numbers = [f"{number:.4g}" for number in (largest, rms)]
    shares = [f"{100 * equal:.3g} %", *(f"{number:.4g}" for number in spread)]
    return (leaf or "(value)", shape, *numbers, *shares)


def _sizes(difference: "np.ndarray") -> tuple[float, float, float]:
    """Return the largest absolute cell, the root mean square, the share of zeros."""
    import numpy as np

    if not difference.size:
        return 0.0, 0.0, 1.0
    cells = difference.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        rms = float(np.sqrt(np.mean(cells**2)))
    return float(np.max(np.abs(cells))), rms, float(np.mean(cells == 0))


def _mean(numbers: "np.ndarray") -> float:
    return float(numbers.mean()) if numbers.size else 0.0


def _json(both: "Comparison", out: Path | None) -> dict[str, "Json"]:
    leaves: dict[str, Json] = {}
    for leaf, stacked in both.values.items():
        largest, rms, equal = _sizes(both.difference[leaf])
        leaves[leaf] = {
            "shape": [*stacked.shape[1:]],
            "max_abs": largest,
            "rms": rms,
            "equal": equal,
            "mean": _mean(both.mean[leaf]),
            "std": _mean(both.std[leaf]),
        }
    return {
        "name": both.name,
        "runs": [result.run.id for result in both.results],
        "steps": [*both.steps],
        "mismatches": {**both.mismatches},
        "leaves": leaves,
        "file": None if out is None else str(out),
    }


def _figure(both: "Comparison") -> "Figure":
    """Draw A - B: what the helpers drew, where both were heatmaps, else the values."""
    import numpy as np

    from theseus_track.analysis.figures import figure
    from theseus_track.errors import BadInput

    first, second = both.results[:2]
    title = f"{first.run.name} @ {first.step} - {second.run.name} @ {second.step}"
    title = f"{both.name}: {title}"
    if first.view is not None and second.view is not None:
        found = _drawn_difference(first.view, second.view, title)
        if found is not None:
            return found
    drawn = {leaf: cells for leaf, cells in both.difference.items() if cells.size}
    if not 0 < len(drawn) <= _PANELS:
        raise BadInput(
            f"{both.name!r} has {len(drawn)} arrays to draw; a figure shows 1 to "
            f"{_PANELS}. Use theseus_track.store.compare and draw those that you need."
        )
    columns = min(3, len(drawn))
    whole, axes = figure(-(-len(drawn) // columns), columns)
    whole.suptitle(title)
    places = [*np.ravel(axes)]
    for place, (leaf, cells) in zip(places, drawn.items(), strict=False):
        _panel(cells, leaf, place)
    for place in places[len(drawn) :]:
        place.set_axis_off()
    return whole


def _drawn_difference(first: "View", second: "View", title: str) -> "Figure | None":
    from theseus_track.analysis.figures import heatmap
    from theseus_track.store.comparison import cell_difference

    cells, other = (view.arrays.get("values") for view in (first, second))
    heatmaps = (first.kind, second.kind) == ("heatmap", "heatmap")
    if not heatmaps or cells is None or other is None or cells.shape != other.shape:
        return None
    # Cells that were averaged for the figure have fewer than one label each.
    sides = zip("xy", cells.shape[:-3:-1], strict=False)
    texts: dict[str, Any] = {f"{axis}label": first.labels.get(axis) for axis in "xy"}
    texts |= {
        f"{axis}ticklabels": [*first.ticks[axis]]
        for axis, size in sides
        if len(first.ticks.get(axis, ())) == size
    }
    cells = cell_difference(cells, other)
    return heatmap(cells, center=0.0, title=title, **texts)


def _panel(cells: "np.ndarray", title: str, place: "Axes") -> None:
    from theseus_track.analysis.figures import heatmap

    # More axes than two are shown as the rows of their last one.
    flat = cells.reshape(-1, cells.shape[-1]) if cells.ndim > 2 else cells
    heatmap(flat, ax=place, center=0.0, title=title)


def _save(drawn: "Figure", out: Path) -> None:
    from theseus_track.errors import LedgerError

    try:
        drawn.savefig(out, bbox_inches="tight")
    except OSError as error:
        raise LedgerError(
            f"The figure cannot be written to {out}: {error.strerror}. "
            "Choose a file in a directory that can be written."
        ) from error
