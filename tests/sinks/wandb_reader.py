"""What offline W&B runs hold, read from their `.wandb` files.

A `.wandb` file is a LevelDB log: blocks of 32 KiB, in them records (a checksum, a
length, a type), here behind a header of seven bytes. wandb 0.31 has no reader of it.
"""

import dataclasses
import html
import io
import json
import re
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from PIL import Image
from wandb.proto import wandb_internal_pb2 as messages

from theseus_track.sinks.conformance import Shown, tiny_png

_HEADER = b":W&B"
_BLOCK = 32 * 1024
_LIMIT = 20.0
_RECORD: Any = vars(messages)["Record"]  # generated, without types
MIRRORED = "theseus/metrics/"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WandbRun:
    """One offline run: its rows in order, its summary, config and definitions."""

    id: str
    run: Any
    files: Path
    rows: list[dict[str, Any]]
    summary: dict[str, Any]
    config: dict[str, Any]
    steps_of: dict[str, str]
    hidden: set[str]

    def column(self, key: str) -> list[Any]:
        """Return the values of a key in the order of rows, where it has any."""
        return [row[key] for row in self.rows if key in row]

    def with_step(self, key: str, step: str = "theseus/step") -> list[tuple[int, Any]]:
        """Return (training step, value) of a key, in the order of rows."""
        return [(row[step], row[key]) for row in self.rows if key in row]


def read_runs(directory: Path, *, finished: bool = True) -> list[WandbRun]:
    """Return all runs below a directory, by the second they began in and the id.

    Args:
        directory: Where `WANDB_DIR` pointed.
        finished: Wait until each is complete: `run.finish` may return earlier. Else
            those are left out whose process was killed before it wrote anything.
    """
    paths = sorted(directory.rglob("*.wandb"))
    found = [_read(path, finished=finished) for path in paths]
    return [run for run in found if run is not None]


def read_run(directory: Path, *, finished: bool = True) -> WandbRun:
    """Return the only run below a directory."""
    (run,) = read_runs(directory, finished=finished)
    return run


def read_shown(directory: Path) -> list[Shown]:
    """Return all figures, JSON values and metrics of all runs of ours."""
    return [shown for run in read_runs(directory) for shown in shown_in(run)]


def _read(path: Path, *, finished: bool) -> WandbRun | None:
    deadline = time.monotonic() + _LIMIT
    while True:
        records = list(_records(path))
        kinds = [record.WhichOneof("record_type") for record in records]
        if not finished or "exit" in kinds:
            break
        assert time.monotonic() < deadline, f"{path} has no exit record: {kinds}"
        time.sleep(0.01)
    rows, summary, config, steps_of, hidden = [], {}, {}, {}, set()
    run = None
    for record in records:
        match record.WhichOneof("record_type"):
            case "run":
                run = record.run
                config.update(_items(record.run.config.update))
            case "history":
                rows.append(_items(record.history.item))
                rows[-1]["_step"] = record.history.step.num
            case "summary":
                summary.update(_items(record.summary.update))
            case "config":
                config.update(_items(record.config.update))
            case "metric":
                metric = record.metric
                if metric.step_metric:
                    steps_of[metric.name] = metric.step_metric
                if metric.options.hidden:
                    hidden.add(metric.name)
    if run is None:
        assert not finished, path
        return None
    return WandbRun(
        id=run.run_id,
        run=run,
        files=path.parent / "files",
        rows=rows,
        summary=summary,
        config=config,
        steps_of=steps_of,
        hidden=hidden,
    )


def _records(path: Path) -> Iterator[Any]:
    data = path.read_bytes()
    assert data[:4] in (_HEADER, b""), data[:4]
    position, parts = 7, b""
    while position + 7 <= len(data):
        left = _BLOCK - position % _BLOCK
        if left < 7:
            position += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, position)
        if kind == 0 or position + 7 + length > len(data):
            return
        parts += data[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):
            yield _RECORD.FromString(parts)
            parts = b""


def _items(items: Any) -> dict[str, Any]:
    """Return items as a dict; a media object is the dict of its fields."""
    found: dict[str, Any] = {}
    for item in items:
        first, *rest = list(item.nested_key) or [item.key]
        value = json.loads(item.value_json)
        if not rest:
            found[first] = value
        else:
            fields = found.setdefault(first, {})
            if isinstance(fields, dict):
                fields[".".join(rest)] = value
    return found


def shown_in(run: WandbRun) -> Iterator[Shown]:
    """Return all figures, JSON values and metrics of a run of ours."""
    names = run.config.get("theseus/names", {})
    for row in run.rows:
        for key, value in row.items():
            full = names.get(key, key)
            mirrored = full.startswith(MIRRORED)
            if full.startswith(("_", "theseus/")) and not mirrored:
                continue
            if isinstance(value, dict):
                yield from _media(run, row, full, value)
            elif not full.startswith("analysis/"):
                name = full.removeprefix(MIRRORED)
                yield Shown(
                    kind="metric",
                    name="" if name == "%" else unquote(name),
                    step=row["theseus/train_step"],
                    wall_time=row["theseus/train_time"],
                    content=float(value),
                )


def _media(run: WandbRun, row: dict[str, Any], full: str, value: Any) -> Iterator[Any]:
    _, piece, *beside = full.split("/")
    name, _, part = piece.partition(".")
    file = run.files / value["path"] if "path" in value else None
    where = {"step": row["theseus/step"], "wall_time": row["theseus/time"]}
    where |= {"name": unquote(name), "part": unquote(part)}
    if value["_type"] == "image-file":
        assert file is not None
        yield Shown(kind="figure", content=pixels(file, row["theseus/step"]), **where)
    elif value["_type"] == "html-file":
        assert file is not None
        assert beside == ["json"]
        yield Shown(kind="json", content=json.loads(page(file)), **where)


def pixels(path: Path, step: int) -> bytes:
    """Return the figure that `Items` makes for a step, if an image has its pixels."""
    given = tiny_png(step)
    same = _rgb(io.BytesIO(given)) == _rgb(path)
    return given if same else path.read_bytes()


def _rgb(file: Path | io.BytesIO) -> bytes:
    with Image.open(file) as image:
        return image.convert("RGB").tobytes()


def page(path: Path) -> str:
    """Return the text in the block of a page that shows a JSON value."""
    found = re.search("<pre>(.*)</pre>", path.read_text("utf-8"), flags=re.DOTALL)
    assert found
    return html.unescape(found[1])
