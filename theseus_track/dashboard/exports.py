"""Values and figures as files that other programs read: CSV, npz, zip."""

import io
import itertools
import json
import zipfile
from collections.abc import Iterable, Iterator

import numpy as np

from theseus_track.dashboard.values import MAX_BYTES
from theseus_track.errors import BadInput, LedgerError, NotFound
from theseus_track.records import host_leaf, safe_name, split_tree
from theseus_track.store import Result, RunIndex

__all__ = ["csv_of", "npz_of", "zipped"]

# The rows of a common spreadsheet; more would take gigabytes as text.
_MAX_CELLS = 1 << 20


def npz_of(result: Result) -> bytes:
    """Return the values as an npz file, one array for each leaf, "value" for one.

    Raises:
        NotFound: When there are none.
        BadInput: When they are larger than is sent.
    """
    buffer = io.BytesIO()
    named = {leaf or "value": array for leaf, array in _leaves(result)}
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in named.items():
            with archive.open(f"{safe_name(name)}.npy", "w") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    return buffer.getvalue()


def csv_of(result: Result) -> bytes:
    """Return the values as CSV: leaf, one index for each axis, and the value of a cell.

    Raises:
        NotFound: When there are none.
        BadInput: When they have more cells than a spreadsheet takes.
    """
    leaves = _leaves(result)
    cells = sum(array.size for _, array in leaves)
    if cells > _MAX_CELLS:
        raise BadInput(
            f"The values have {cells} cells; a CSV has at most {_MAX_CELLS}. "
            "Take values.npz instead."
        )
    axes = max((array.ndim for _, array in leaves), default=0)
    lines = [",".join(["leaf", *(f"index{i}" for i in range(axes)), "value"])]
    for leaf, array in leaves:
        quoted = _cell(leaf)
        numbers = array.reshape(-1).tolist()
        places = itertools.product(*map(range, array.shape))
        gaps = [""] * (axes - array.ndim)
        lines += [
            ",".join([quoted, *map(str, place), *gaps, repr(number)])
            for place, number in zip(places, numbers, strict=True)
        ]
    return ("\r\n".join(lines) + "\r\n").encode()


def zipped(run: RunIndex, name: str) -> Iterator[bytes]:
    """Yield a zip of the figures, tables and values of all steps of an analysis.

    What cannot be read is named in `missing.txt` instead.

    Raises:
        NotFound: When the run has no result of that name.
    """
    found = [f for f in run.findings() if f.name == name and not f.superseded]
    if not found:
        raise NotFound(f"The run has no result of {name!r}.")
    sink = _Sink()
    missing: list[str] = []
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for finding in found:
            try:
                for file, data in _files(run.result(finding)):
                    archive.writestr(file, data)
            except (BadInput, LedgerError) as why:
                missing.append(f"step {finding.step}: {why}")
            yield sink.taken()
        if missing:
            archive.writestr("missing.txt", "\n".join(missing) + "\n")
        archive.writestr("steps.json", json.dumps([f.step for f in found]))
    yield sink.taken()


def _files(result: Result) -> Iterable[tuple[str, bytes]]:
    yield from result.contents()
    if result.values_record is not None:
        yield f"{result.name}-step{result.step}.npz", npz_of(result)


class _Sink(io.RawIOBase):
    """A file that cannot seek: what was written waits until it is taken."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        chunk = bytes(memoryview(data))  # type: ignore[arg-type]
        self._chunks.append(chunk)
        return len(chunk)

    def taken(self) -> bytes:
        taken, self._chunks = b"".join(self._chunks), []
        return taken


def _leaves(result: Result) -> list[tuple[str, np.ndarray]]:
    record = result.values_record
    if record is None:
        raise NotFound("The result has no values: it was drawn on the host.")
    if record.bytes > MAX_BYTES:
        raise BadInput(
            f"The values are {record.bytes} bytes; at most {MAX_BYTES} are sent. "
            "Read them with theseus_track.store."
        )
    _, leaves = split_tree(result.values, host_leaf)
    return [(leaf, np.asarray(array)) for leaf, array in leaves]


def _cell(text: str) -> str:
    # A spreadsheet runs what begins like a formula.
    guarded = f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
    return '"' + guarded.replace('"', '""') + '"'
