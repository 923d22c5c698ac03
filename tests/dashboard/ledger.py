"""A small root with everything that the pages show, written without JAX."""

import io
import json
from pathlib import Path

import numpy as np
from PIL import Image

from tests.store.ledgers import metrics, new_figure, new_values, run_info, table_part
from theseus_track.records import View
from theseus_track.store import LedgerWriter, NewPart

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>parent.hit=1</script></svg>'
HOSTILE = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'
LONG = "a-name-that-begins-like-the-other-" * 3


def png(shade: int) -> bytes:
    """Return a small picture."""
    kept = io.BytesIO()
    Image.new("RGB", (40, 30), (shade, 80, 160)).save(kept, "PNG")
    return kept.getvalue()


def heatmap(step: int) -> View:
    """Return a heatmap whose cells are `100 * row + column + step`."""
    values = np.add.outer(100.0 * np.arange(4), np.arange(6)) + step
    labels = {"x": "Feature", "y": "Token", "title": None}
    return View(kind="heatmap", arrays={"values": values}, labels=labels)


def bars(step: int) -> View:
    """Return three bars."""
    arrays = {"x": np.arange(3.0), "y": np.arange(3.0) + step}
    return View(kind="bar", arrays=arrays, ticks={"x": ["a", "b", "c"]})


def fill(root: Path) -> None:
    """Write two runs that can be compared, one of another probe, one of metrics."""
    plans = [
        ("one", (10, 20, 30), "0" * 64),
        ("two", (15, 30), "0" * 64),
        ("other", (30,), "9" * 64),
    ]
    for number, (name, steps, probe) in enumerate(plans):
        config = {"seed": number, "lr": 0.1}
        info = run_info(
            name,
            name=name,
            config=config,
            tags=("base",) if number < 2 else (),
            created=number,
        )
        with LedgerWriter.create(root, info) as ledger:
            for step in range(0, 31, 5):
                ledger.append(metrics(step, **{"train/loss": 2.0 / (step + 1)}))
            for step in steps:
                _evaluate(ledger, step, probe)
    with LedgerWriter.create(root, run_info("plain", name=LONG + "x")) as ledger:
        ledger.append(metrics(1, loss=0.5))


def _evaluate(ledger: LedgerWriter, step: int, probe: str) -> None:
    value = np.full((2, 3), step, np.float32)
    made = [new_values(step, value, name=n, probe=probe) for n in ("acts", "norms")]
    acts, norms = ledger.append(*made)
    parts = {
        "acts": NewPart(
            part="",
            kind="figure",
            blobs={"png": png(step), "pdf": b"%PDF-1.4"},
            view=heatmap(step),
        ),
        "norms": NewPart(
            part="", kind="figure", blobs={"png": png(9)}, view=bars(step)
        ),
        "photo": NewPart(part="", kind="figure", blobs={"png": png(200 - step)}),
    }
    ledger.append(
        new_figure(step, acts, name="acts", parts=(parts["acts"],)),
        new_figure(step, norms, name="norms", parts=(parts["norms"],)),
        new_figure(step, name="photo", parts=(parts["photo"],)),
        new_figure(step, name="table", parts=(table_part(f'{{"score": {step}}}'),)),
        new_figure(
            step,
            name="broken",
            parts=(),
            error="ValueError: no such axis",
            phase="plot",
            traceback="Traceback: line 7 in plot",
        ),
    )


def fill_hostile(root: Path) -> None:
    """Write a run whose every text is markup; its figure is an SVG with a script."""
    info = run_info(
        "hostile",
        name=HOSTILE,
        project=HOSTILE,
        tags=(HOSTILE,),
        group=HOSTILE,
        config={HOSTILE: HOSTILE, "__proto__": {"x": 1}, "constructor": HOSTILE},
    )
    view = View(
        kind="heatmap",
        arrays={"values": np.array([[np.nan, np.inf], [-np.inf, 1e300]])},
        labels={"x": HOSTILE, "y": HOSTILE, "title": HOSTILE, "annot": [[HOSTILE]]},
        ticks={"x": [HOSTILE] * 9, "y": []},
        scale={"cmap": "constructor", "vmin": "x", "center": HOSTILE, "blocks": 7},
        caption=HOSTILE,
    )
    odd = View(kind="grid", arrays={"0/values": np.eye(2)}, labels={"panels": [None]})
    shown = NewPart(
        part=HOSTILE, kind="figure", blobs={"png": SVG, "svg": SVG}, view=view
    )
    part = NewPart(part="odd", kind="figure", blobs={"png": SVG}, view=odd)
    table = table_part(json.dumps({HOSTILE: [HOSTILE]}), "table")
    with LedgerWriter.create(root, info) as ledger:
        ledger.append(metrics(1, **{HOSTILE: 1.0}))
        ref = ledger.append(new_values(1, name="evil"))[0]
        ledger.append(
            new_figure(
                1, ref, name="evil", parts=(shown, part, table), paths=(HOSTILE,)
            ),
            new_figure(
                1,
                name="failed",
                parts=(),
                error=HOSTILE,
                traceback=HOSTILE,
                phase="plot",
            ),
        )
