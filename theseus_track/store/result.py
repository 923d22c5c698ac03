"""One result as people use it: the values, figure and table of one step."""

import contextlib
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from theseus_track.errors import BadInput, LedgerError
from theseus_track.records import (
    Part,
    RecordRef,
    ResultRecord,
    RunInfo,
    Source,
    StoredView,
    ValuesRecord,
    View,
    loads,
    safe_name,
)
from theseus_track.records.strict_json import Json
from theseus_track.store import html
from theseus_track.store.blobs import read_blob
from theseus_track.store.figure import StoredFigure
from theseus_track.store.layout import blob_path, payload_path
from theseus_track.store.payload import read_leaf, read_tree
from theseus_track.store.query import Finding

__all__ = ["Result"]

T = TypeVar("T")


class Result:
    """The values of one analysis at one step and what `plot` made of them.

    Descriptions are at hand; arrays and files are read, and checked, when used.

    Attributes:
        run: The run that it belongs to, as `run.json` tells it.
        name: The NAME of the analysis.
        key: Its registry key; None for a host-side result.
        step: Training step, >= 0.
        superseded: Whether a newer one of that name and step replaced it.
        values_record: The journal's record of the values, or None.
        result_record: The journal's record of what was drawn, or None when the
            process died in between.
        ref: Where the result is in the ledger; the values if nothing was drawn.
    """

    def __init__(self, directory: Path, run: RunInfo, finding: Finding) -> None:
        self._directory = directory
        self._finding = finding
        self.run = run
        self.name = finding.name
        self.step = finding.step
        self.superseded = finding.superseded
        self.values_record = finding.values
        self.result_record = finding.result

    def __repr__(self) -> str:
        return f"Result({self._caption()})"

    @property
    def key(self) -> str | None:
        """The registry key of the analysis; None for a host-side result."""
        return self._main.key

    @property
    def ref(self) -> RecordRef:
        """Where the result is in the ledger; the values if nothing was drawn."""
        ref = self._finding.result_ref or self._finding.values_ref
        return _there(ref)

    @property
    def paths(self) -> tuple[str, ...]:
        """The calls that were analysed, in program order."""
        return (self.values_record or self._main).paths

    @property
    def wall_time(self) -> float:
        """When the step was logged, in seconds since the epoch, UTC."""
        return self._main.wall_time

    @property
    def source(self) -> Source:
        """How it came about: live, replay (of which checkpoint) or replot."""
        return self._main.source

    @property
    def error(self) -> str | None:
        """One line that says what failed, or None."""
        return self.result_record.error if self.result_record else None

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Leaf of the value -> its shape; "" when the value is one array."""
        record = self.values_record
        return {leaf.leaf: leaf.shape for leaf in record.leaves} if record else {}

    @property
    def dtypes(self) -> dict[str, str]:
        """Leaf of the value -> its stored dtype."""
        record = self.values_record
        return {leaf.leaf: leaf.dtype for leaf in record.leaves} if record else {}

    @property
    def origins(self) -> dict[str, str]:
        """Leaf of the value -> its dtype on the device, where it was upcast."""
        leaves = self.values_record.leaves if self.values_record else ()
        return {leaf.leaf: leaf.origin for leaf in leaves if leaf.origin}

    @property
    def files(self) -> list[Path]:
        """The files of its figures and tables, absolute; a PNG before its PDF."""
        return [
            blob_path(self._directory, digest, suffix)
            for part in self.parts
            for suffix, digest in sorted(part.blobs.items(), reverse=True)
        ]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The journal's description of its figures and JSON values."""
        return self.result_record.parts if self.result_record else ()

    @functools.cached_property
    def values(self) -> object:
        """What `plot` saw: numpy arrays in nested dicts, lists and tuples.

        None for a host-side result. LedgerError when damaged; PayloadPending
        when not all of it may have arrived yet.
        """
        record, ref = self.values_record, self._finding.values_ref
        if record is None or ref is None:
            return None
        path = payload_path(self._directory, ref.writer)
        return read_tree(path, record.tree, record.leaves)

    @property
    def figures(self) -> dict[str, StoredFigure]:
        """Part name -> figure."""
        return {
            part.part: StoredFigure(self._directory, part)
            for part in self.parts
            if part.kind == "figure"
        }

    @property
    def figure(self) -> StoredFigure | None:
        """The figure, the first of several, or None."""
        return next(iter(self.figures.values()), None)

    @functools.cached_property
    def tables(self) -> dict[str, Json]:
        """Part name -> JSON value. LedgerError when a file is damaged."""
        return {p.part: self._json(p) for p in self.parts if p.kind == "json"}

    @property
    def table(self) -> Json:
        """The JSON value, the first of several, or None."""
        return next(iter(self.tables.values()), None)

    @property
    def views(self) -> dict[str, View]:
        """Part name -> what a plotting helper drew, as data; newer kinds left out."""
        found: dict[str, View] = {}
        for part in self.parts:
            # A kind that this version does not know is refused by View.
            with contextlib.suppress(BadInput):
                if part.view is not None:
                    found[part.part] = self._view(part.view)
        return found

    @property
    def view(self) -> View | None:
        """What a plotting helper drew, as data: the first, or None."""
        return next(iter(self.views.values()), None)

    def contents(self) -> Iterator[tuple[str, bytes]]:
        """Yield its files under names that people can read, such as `a-step5.pdf`.

        Raises:
            LedgerError: When a file is missing or damaged.
        """
        for part in self.parts:
            stem = f"{self.name}-step{self.step}"
            if part.part:
                stem = f"{stem}.{safe_name(part.part)}"
            for suffix, digest in sorted(part.blobs.items(), reverse=True):
                path = blob_path(self._directory, digest, suffix)
                yield f"{stem}.{suffix}", read_blob(path, digest)

    def to_json(self) -> dict[str, Json]:
        """Return its description, without arrays, as the CLI's `--json` prints it."""
        record = self.values_record
        return {
            "run": self.run.id,
            "analysis": self.key,
            "name": self.name,
            "paths": [*self.paths],
            "step": self.step,
            "wall_time": self.wall_time,
            "source": self.source.kind,
            "checkpoint": self.source.checkpoint,
            "shapes": {leaf: [*shape] for leaf, shape in self.shapes.items()},
            "dtypes": {**self.dtypes},
            "origins": {**self.origins},
            "files": [str(path) for path in self.files],
            "parts": [part.part for part in self.parts],
            "error": self.error,
            "superseded": self.superseded,
            "probe": record.probe if record else None,
            "measure": record.measure if record else None,
            "draw": self._main.draw,
            "program": record.program if record else None,
        }

    def _repr_html_(self) -> str:
        pieces = [
            html.image(figure.png, self._caption()) for figure in self.figures.values()
        ]
        pieces += [html.json_table(table) for table in self.tables.values()]
        if self.error:
            pieces.append(html.json_table({"error": self.error}))
        if not pieces:
            shapes: list[list[Json]] = [
                [leaf, str(shape), self.dtypes[leaf]]
                for leaf, shape in self.shapes.items()
            ]
            pieces.append(html.rows_table(("value", "shape", "dtype"), shapes))
        return html.captioned(self._caption(), "".join(pieces))

    def _caption(self) -> str:
        paths = ", ".join(path or repr(path) for path in self.paths)
        return f"{self.run.name} · {self.name} · step {self.step} · {paths}"

    @property
    def _main(self) -> ResultRecord | ValuesRecord:
        if self.result_record is not None:
            return self.result_record
        return _there(self.values_record)

    def _json(self, part: Part) -> Json:
        path = blob_path(self._directory, part.blobs["json"], "json")
        try:
            return loads(read_blob(path, part.blobs["json"]))
        except ValueError as error:
            raise LedgerError(f"{path} holds no strict JSON: {error}") from error

    def _view(self, view: StoredView) -> View:
        path = payload_path(self._directory, self.ref.writer)
        ticks: Mapping[str, Json] = view.ticks
        return View(
            kind=view.kind,
            arrays={leaf.leaf: read_leaf(path, leaf) for leaf in view.arrays},
            labels=view.labels,
            ticks={
                axis: [str(text) for text in texts]
                for axis, texts in ticks.items()
                if isinstance(texts, list)
            },
            scale=view.scale,
            caption=view.caption,
        )


def _there(value: T | None) -> T:
    # A Finding has values or a result; the type cannot say so.
    if value is None:
        raise LedgerError("The record is incomplete.")
    return value
