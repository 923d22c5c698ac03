"""A sink of your own: what theseus-track finds out, as lines of JSON in one file."""

import json
from pathlib import Path

from theseus_track.records import FigureItem, Item, JsonItem, RunInfo, dumps
from theseus_track.sinks import Capabilities, Receipt


class LinesSink:
    name = "lines"
    can = Capabilities(
        past_steps=True, one_writer=True, tables=True, pdf=False, read_back=True
    )

    def __init__(self, directory: str) -> None:
        self.directory = Path(directory)

    def open(self, info: RunInfo) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / f"{info.id}.jsonl"
        self.file = path.open("a+")
        self.file.seek(0)
        self.known = {json.loads(line)["id"] for line in self.file}

    def write(self, item: Item) -> Receipt:
        part = getattr(item, "part", "")
        line = {"id": f"{item.ref.writer}:{item.ref.seq}:{part}", "part": part}
        if line["id"] in self.known:
            return Receipt("written", "was here already")
        line |= {"step": item.step, "time": item.wall_time}
        if isinstance(item, FigureItem):
            line |= {"kind": "figure", "name": item.name, "content": item.png.hex()}
        elif isinstance(item, JsonItem):
            line |= {"kind": "json", "name": item.name, "content": item.value}
        else:
            line |= {"kind": "metrics", "content": dict(item.metrics)}
        self.file.write(dumps(line) + "\n")
        self.file.flush()
        self.known.add(line["id"])
        return Receipt("written")

    def flush(self, timeout: float) -> None:
        self.file.flush()

    def close(self, timeout: float) -> None:
        self.file.close()


def make_sink(target: str, info: RunInfo) -> LinesSink:
    return LinesSink(target or "lines")
