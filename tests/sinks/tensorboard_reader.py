"""What a log directory holds, by TensorBoard's own reader of event files."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.util import tensor_util

from theseus_track.sinks.conformance import Shown


def read_board(logdir: Path) -> list[Shown]:
    """Return all figures, JSON values and metrics; numbers of JSON values are not."""
    return list(_read(logdir))


def _read(logdir: Path) -> Iterator[Shown]:
    for path in sorted(logdir.rglob("*tfevents*")):
        below = path.parent.name
        of_results = below.startswith("theseus") and "metrics" not in below
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                plugin = value.metadata.plugin_data.plugin_name
                array = tensor_util.make_ndarray(value.tensor)
                where = {"step": event.step, "wall_time": event.wall_time}
                if plugin == "images":
                    name, part = _split(value.tag)
                    yield Shown(
                        kind="figure", name=name, part=part, content=array[2], **where
                    )
                elif plugin == "text":
                    name, part = _split(value.tag.removesuffix("/table"))
                    text = array[0].decode()
                    content = json.loads(text.split("```json\n")[1].split("\n```")[0])
                    yield Shown(
                        kind="json", name=name, part=part, content=content, **where
                    )
                elif not of_results:
                    name = "" if value.tag == "%" else unquote(value.tag)
                    content = float(array)
                    yield Shown(kind="metric", name=name, content=content, **where)


def _split(tag: str) -> tuple[str, str]:
    name, _, part = tag.partition(".")
    return unquote(name), unquote(part)
